/*
 * What end-to-end tests need of an MPI program: it tells where its ranks run,
 * checks that they reach each other, and fails as it is told.
 *
 *     mpirun -n 4 ranks [--lines N] [--memory RANK:MIB] [--segv RANK]
 *                       [--abort RANK] [--exit RANK:CODE] [--wait RANK]
 *                       [--loop RANK] [--pause RANK] [--file RANK]
 *                       [--slow RANK] [--sleep SECONDS]
 *
 * Every rank prints "rank R of N on HOST"; rank 0 prints "sum S", the sum of
 * all rank numbers as MPI found it. Then, in this order: N lines of 64 bytes
 * from each rank, "out R NUMBER" filled up with dots; memory is touched; a
 * rank dies by a bad address, by MPI_Abort, or ends with a code while the
 * others wait for it, waits for a message that nobody sends, computes without
 * end, sleeps without end, looks for a file that never comes, or computes ten
 * times as long as the others in each of steps without end; all sleep. Exit
 * status: 0, 1 when MPI is wrong, 2 when an argument is.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_MPI = 1, EXIT_USAGE = 2, LINE = 64 };

/* What is asked for; a rank of -1 is none. */
struct plan {
	long lines;
	long seconds;
	int memory_rank;
	long memory_mib;
	int segv_rank;
	int abort_rank;
	int exit_rank;
	int exit_code;
	int wait_rank;
	int loop_rank;
	int pause_rank;
	int file_rank;
	int slow_rank;
};

static int usage(const char *argument)
{
	fprintf(stderr, "ranks: cannot read %s\n", argument);
	return EXIT_USAGE;
}

/* Reads "RANK:VALUE"; returns 0 when it is none. */
static int pair(const char *text, int *rank, long *value)
{
	return sscanf(text, "%d:%ld", rank, value) == 2 && *rank >= 0 && *value >= 0;
}

/* Reads the arguments; returns 0, or EXIT_USAGE. */
static int parse(int argc, char **argv, struct plan *plan)
{
	long code = 0;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return usage(argv[i]);
		const char *name = argv[i], *value = argv[i + 1];

		if (strcmp(name, "--lines") == 0)
			plan->lines = atol(value);
		else if (strcmp(name, "--sleep") == 0)
			plan->seconds = atol(value);
		else if (strcmp(name, "--segv") == 0)
			plan->segv_rank = atoi(value);
		else if (strcmp(name, "--abort") == 0)
			plan->abort_rank = atoi(value);
		else if (strcmp(name, "--wait") == 0)
			plan->wait_rank = atoi(value);
		else if (strcmp(name, "--loop") == 0)
			plan->loop_rank = atoi(value);
		else if (strcmp(name, "--pause") == 0)
			plan->pause_rank = atoi(value);
		else if (strcmp(name, "--file") == 0)
			plan->file_rank = atoi(value);
		else if (strcmp(name, "--slow") == 0)
			plan->slow_rank = atoi(value);
		else if (strcmp(name, "--memory") == 0 && pair(value, &plan->memory_rank, &plan->memory_mib))
			continue;
		else if (strcmp(name, "--exit") == 0 && pair(value, &plan->exit_rank, &code))
			plan->exit_code = (int)code;
		else
			return usage(name);
	}
	return 0;
}

/* Prints lines of LINE bytes each, the end of the line among them. */
static void print_lines(int rank, long lines)
{
	char line[LINE + 1];

	for (long number = 0; number < lines; number++) {
		int length = snprintf(line, sizeof line, "out %d %06ld ", rank, number);

		memset(line + length, '.', (size_t)(LINE - 1 - length));
		line[LINE - 1] = '\n';
		fwrite(line, 1, LINE, stdout);
	}
	fflush(stdout);
}

/* Takes memory and uses it, so that it counts. It is never given back. */
static void touch_memory(long mib)
{
	for (long i = 0; i < mib; i++) {
		char *block = malloc(1 << 20);

		if (block == NULL)
			return;
		memset(block, (int)i + 1, 1 << 20);
	}
}

static double cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Computes for some CPU time, which others on the machine do not shorten. */
static void compute(double seconds)
{
	/* Asking for the time is a system call, which programs that compute hardly make. */
	for (double end = cpu_time() + seconds; cpu_time() < end;)
		for (volatile int i = 0; i < 1000000; i++)
			;
}

int main(int argc, char **argv)
{
	struct plan plan = { .memory_rank = -1, .segv_rank = -1, .abort_rank = -1, .exit_rank = -1, .wait_rank = -1, .loop_rank = -1, .pause_rank = -1, .file_rank = -1, .slow_rank = -1 };
	int rank, ranks, sum = 0;
	char host[256] = "";

	int wrong = parse(argc, argv, &plan);
	if (wrong)
		return wrong;

	/* Errors in MPI end the job with MPI's own message: its default. */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	gethostname(host, sizeof host - 1);
	printf("rank %d of %d on %s\n", rank, ranks, host);
	fflush(stdout);

	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != ranks * (ranks - 1) / 2) {
		fprintf(stderr, "rank %d: the sum of all ranks is %d\n", rank, sum);
		MPI_Abort(MPI_COMM_WORLD, EXIT_MPI);
	}
	if (rank == 0) {
		printf("sum %d\n", sum);
		fflush(stdout);
	}
	print_lines(rank, plan.lines);
	if (rank == plan.memory_rank)
		touch_memory(plan.memory_mib);
	if (rank == plan.segv_rank)
		raise(SIGSEGV);
	if (rank == plan.abort_rank)
		MPI_Abort(MPI_COMM_WORLD, EXIT_MPI);
	if (rank == plan.exit_rank)
		_exit(plan.exit_code);
	if (rank == plan.wait_rank)
		MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (volatile unsigned long sum = 0; rank == plan.loop_rank; sum++)
		;
	while (rank == plan.pause_rank)
		pause();
	while (rank == plan.file_rank && access("/tmp/never", F_OK) != 0)
		nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	while (plan.slow_rank >= 0) {
		compute(rank == plan.slow_rank ? 0.5 : 0.05);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	sleep((unsigned int)plan.seconds);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
