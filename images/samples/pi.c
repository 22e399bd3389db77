/*
 * pi by the midpoint rule on 4/(1+x^2) between 0 and 1, shared out over the
 * ranks of MPI_COMM_WORLD.
 *
 *     mpirun -n 4 pi [INTERVALS]
 *
 * Every rank prints where it runs; rank 0 prints the result. Exit status: 0,
 * 1 when MPI fails, 2 when the argument is wrong.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static const long long default_intervals = 10 * 1000 * 1000;
static const long long most_intervals = 1000LL * 1000 * 1000 * 1000;

/* Returns the number of intervals, or 0 when the text is not one. */
static long long parse_intervals(const char *text)
{
	char *end;

	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0')
		return 0;
	if (value < 1 || value > most_intervals)
		return 0;
	return value;
}

static double partial_sum(long long intervals, int rank, int ranks)
{
	const double width = 1.0 / (double)intervals;
	double sum = 0.0;

	for (long long i = rank; i < intervals; i += ranks) {
		double x = width * ((double)i + 0.5);
		sum += 4.0 / (1.0 + x * x);
	}
	return sum * width;
}

int main(int argc, char **argv)
{
	int rank, ranks;

	/* Errors in MPI end the job with MPI's own message: its default. */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	long long intervals = argc > 1 ? parse_intervals(argv[1]) : default_intervals;
	if (argc > 2 || intervals == 0) {
		if (rank == 0) {
			if (argc > 2)
				fprintf(stderr, "pi: %d arguments given, at most 1 wanted\n", argc - 1);
			else
				fprintf(stderr, "pi: \"%s\" is not a number of intervals from 1 to %lld\n",
					argv[1], most_intervals);
			fprintf(stderr, "usage: pi [INTERVALS]   (default %lld)\n", default_intervals);
		}
		MPI_Finalize();
		return EXIT_USAGE;
	}

	/* The pod's name, where MPI_Get_processor_name may shorten or guess. */
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	printf("rank %d of %d on %s\n", rank, ranks, host);
	fflush(stdout);

	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	double mine = partial_sum(intervals, rank, ranks);
	double pi = 0.0;
	MPI_Reduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("pi is approximately %.15f, error %.3e\n", pi, fabs(pi - acos(-1.0)));
		printf("%lld intervals on %d ranks in %.3f s\n", intervals, ranks, MPI_Wtime() - start);
	}
	MPI_Finalize();
	return EXIT_SUCCESS;
}
