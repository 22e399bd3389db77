/*
 * Trains a logistic regression with data-parallel gradient averaging over MPI:
 * the reference training for images without Python.
 *
 *     mpirun -n 4 train [--epochs N]
 *
 * The task is to tell on which side of a plane points lie. The points are made
 * from a fixed seed, and every rank takes every ranks-th of each batch, so that
 * the result is the same for any number of ranks, but for the order in which
 * floating-point numbers are added. Rank 0 prints one JSON object per epoch, as
 * train.py does. Exit status: 0, 2 when an argument is wrong.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, FEATURES = 8, WEIGHTS = FEATURES + 1, POINTS = 4096, BATCH = 256, MOST_EPOCHS = 100000 };

static const double learning_rate = 0.8;

struct point {
	double x[WEIGHTS]; /* the last one is 1 and has the bias as its weight */
	double label;
};

/* Returns a number from -1 to 1 (Knuth's MMIX generator). */
static double next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / (double)(1ULL << 52) - 1.0;
}

static void make_points(struct point *points)
{
	uint64_t state = 1;
	double plane[WEIGHTS];

	for (int i = 0; i < WEIGHTS; i++)
		plane[i] = next_random(&state);
	for (int n = 0; n < POINTS; n++) {
		double side = plane[FEATURES];

		for (int i = 0; i < FEATURES; i++) {
			points[n].x[i] = next_random(&state);
			side += plane[i] * points[n].x[i];
		}
		points[n].x[FEATURES] = 1.0;
		points[n].label = side > 0.0;
	}
}

/* Returns the probability that a point has the label 1. */
static double predict(const double *weights, const struct point *point)
{
	double sum = 0.0;

	for (int i = 0; i < WEIGHTS; i++)
		sum += weights[i] * point->x[i];
	return 1.0 / (1.0 + exp(-sum));
}

/* Goes once through all points; sums gets the loss and the number of right answers. */
static void train_epoch(const struct point *points, int rank, int ranks, double *weights, double *sums)
{
	sums[0] = sums[1] = 0.0;
	for (int first = 0; first < POINTS; first += BATCH) {
		double gradient[WEIGHTS] = { 0.0 };

		for (int n = first + rank; n < first + BATCH; n += ranks) {
			double p = predict(weights, &points[n]), y = points[n].label;

			sums[0] -= log(fmax(y > 0.5 ? p : 1.0 - p, 1e-12));
			sums[1] += (p > 0.5) == (y > 0.5);
			for (int i = 0; i < WEIGHTS; i++)
				gradient[i] += (p - y) * points[n].x[i];
		}
		MPI_Allreduce(MPI_IN_PLACE, gradient, WEIGHTS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < WEIGHTS; i++)
			weights[i] -= learning_rate * gradient[i] / BATCH;
	}
	MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Returns the number of epochs that the arguments ask for, or 0 when they are wrong. */
static long parse_epochs(int argc, char **argv)
{
	if (argc == 1)
		return 10;
	char *end = NULL;
	long epochs = argc == 3 && strcmp(argv[1], "--epochs") == 0 ? strtol(argv[2], &end, 10) : 0;

	return end != NULL && *end == '\0' && epochs > 0 && epochs <= MOST_EPOCHS ? epochs : 0;
}

int main(int argc, char **argv)
{
	static struct point points[POINTS];
	double weights[WEIGHTS] = { 0.0 }, sums[2];
	int rank, ranks;

	long epochs = parse_epochs(argc, argv);
	if (epochs == 0) {
		fprintf(stderr, "train: use --epochs N, from 1 to %d\n", MOST_EPOCHS);
		return EXIT_USAGE;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	make_points(points);
	for (long epoch = 1; epoch <= epochs; epoch++) {
		train_epoch(points, rank, ranks, weights, sums);
		if (rank == 0) {
			printf("{\"epoch\": %ld, \"epochs\": %ld, \"loss\": %.4f, \"accuracy\": %.4f, \"ranks\": %d}\n",
			       epoch, epochs, sums[0] / POINTS, sums[1] / POINTS, ranks);
			fflush(stdout);
		}
	}
	MPI_Finalize();
	return 0;
}
