/* A library with MPI's interface for ranks on one machine, which meet at the FIFOs FROM-TO of the folder FIFOS. Its handles are pointers, as Open MPI's, or
   integers with -DINTEGERS, as MPICH's. Its clock runs twenty times as fast, so that measuring for seconds takes a moment. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef INTEGERS
typedef int Handle;
enum { world = 0x44000000, byte = 0x4c00010d };
#define IGNORE ((void *)1)
#define VARIABLE(name) "PMI_" #name
#define VERSION "MPICH Version:      4.2.1\nMPICH Release date: today"
#else
typedef struct { int n; } *Handle, Object;
Object ompi_mpi_comm_world, ompi_mpi_byte;
#define world (&ompi_mpi_comm_world)
#define byte (&ompi_mpi_byte)
#define IGNORE ((void *)0)
#define VARIABLE(name) "OMPI_COMM_WORLD_" #name
#define VERSION "Open MPI v5.0.7, package: of a test"
#endif

static int number(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }

static void demand(int holds) {
	if (!holds) abort();
}

/* Opened for both, a FIFO waits for no other end. */
static int channel(int from, int to) {
	static int files[8][8];
	char path[512];
	if (!files[from][to]) {
		snprintf(path, sizeof path, "%s/%d-%d", getenv("FIFOS"), from, to);
		files[from][to] = open(path, O_RDWR | O_CLOEXEC);
		demand(files[from][to] > 0);
	}
	return files[from][to];
}

int MPI_Init(int *count, char ***arguments) { return count && arguments; }
int MPI_Finalize(void) { return printf("finalized\n") < 0; }
int MPI_Get_library_version(char *version, int *length) { return (*length = sprintf(version, "%s", VERSION)) < 0; }
int MPI_Comm_rank(Handle c, int *rank) { demand(c == world); return (*rank = number(VARIABLE(RANK))) < 0; }
int MPI_Comm_size(Handle c, int *size) { demand(c == world); return (*size = number(VARIABLE(SIZE))) < 0; }

int MPI_Send(const void *data, int count, Handle type, int to, int tag, Handle c) {
	demand(type == byte && c == world && tag == (to > 1));
	for (long n, at = 0; at < count; at += n) demand((n = write(channel(number(VARIABLE(RANK)), to), (const char *)data + at, count - at)) > 0);
	return 0;
}

int MPI_Recv(void *data, int count, Handle type, int from, int tag, Handle c, void *status) {
	demand(type == byte && c == world && tag == (number(VARIABLE(RANK)) > 1) && status == IGNORE);
	for (long n, at = 0; at < count; at += n) demand((n = read(channel(from, number(VARIABLE(RANK))), (char *)data + at, count - at)) > 0);
	return 0;
}

int MPI_Iprobe(int from, int tag, Handle c, int *arrived, void *status) {
	struct pollfd wanted = {channel(from, number(VARIABLE(RANK))), POLLIN, 0};
	demand(c == world && tag == 1 && status == IGNORE);
	return (*arrived = poll(&wanted, 1, 0)) < 0;
}

double MPI_Wtime(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return 20 * ((double)time.tv_sec + (double)time.tv_nsec / 1e9);
}
