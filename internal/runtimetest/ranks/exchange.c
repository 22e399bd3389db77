/* Exchanges messages between ranks 0 and 1, and prints latency and bandwidth, as exchange.py does. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LENGTH = 4 << 20, MOST = 10000, DONE = 1, PING = 0, PONG = 1 };

static int me;
static char buffer[LENGTH];
static double trips[MOST + 1];

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Returns the median round trip in seconds; the first byte of a message marks the last one. */
static double round_trip(int length, int warm_up, double seconds) {
	double began = MPI_Wtime();
	int n = 0;
	buffer[0] = 0;
	while (!buffer[0]) {
		double start = MPI_Wtime();
		if (me == PING) {
			buffer[0] = n >= warm_up && (start - began > seconds || n == MOST);
			MPI_Send(buffer, length, MPI_BYTE, PONG, 0, MPI_COMM_WORLD);
			MPI_Recv(buffer, length, MPI_BYTE, PONG, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buffer, length, MPI_BYTE, PING, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buffer, length, MPI_BYTE, PING, 0, MPI_COMM_WORLD);
		}
		trips[n++] = MPI_Wtime() - start;
	}
	qsort(trips + warm_up, n - warm_up, sizeof *trips, compare);
	return trips[warm_up + (n - warm_up) / 2];
}

int main(int argc, char **argv) {
	int size, here = 0;
	alarm(60); /* ends a rank that waits for a message in vain */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2) {
		puts("mpi-runtime-test: not measured: other-mpi");
		return MPI_Finalize();
	}
	if (me <= PONG) {
		double small = round_trip(8, 100, 1), large = round_trip(LENGTH, 3, 2);
		if (me == PING) {
			printf("mpi-runtime-test: latency %.0f ns, bandwidth %.0f B/s, by mpicc\n", small / 2 * 1e9, 2 * LENGTH / large);
			fflush(stdout);
			for (int rank = 2; rank < size; rank++)
				MPI_Send(buffer, 1, MPI_BYTE, rank, DONE, MPI_COMM_WORLD);
		}
	} else {
		/* A rank that waits in MPI would use a CPU. */
		for (; !here; usleep(20000))
			MPI_Iprobe(PING, DONE, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
		MPI_Recv(buffer, 1, MPI_BYTE, PING, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return MPI_Finalize();
}
