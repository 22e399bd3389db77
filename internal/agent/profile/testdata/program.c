/* Calls functions of MPI. Its exit code is 0 if all of them got the arguments that they were called with. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef INTEGERS
typedef int Handle;
#else
typedef struct handle *Handle;
#endif
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Barrier(Handle);
int MPI_Send(const void *, int, Handle, int, int, Handle), MPI_Send_c(const void *, long, Handle, int, int, Handle);
int MPI_Sendrecv(const void *, int, Handle, int, int, void *, int, Handle, int, int, Handle, void *);
int MPI_Alltoallv(const void *, const int *, const int *, Handle, void *, const int *, const int *, Handle, Handle);
int MPI_Gather(const void *, int, Handle, void *, int, Handle, int, Handle);

int main(int count, char **arguments) {
	Handle world = (Handle)1, wide = (Handle)8, narrow = (Handle)4;
	int counts[3] = {1, 2, 3}, at[3] = {0}, status[6], failed = MPI_Init(&count, &arguments);
	for (int i = 0; i < 2; i++) failed |= MPI_Send("", 1000, wide, -1, 7, world);
	failed |= MPI_Sendrecv("", 10, wide, -1, 1, at, 11, narrow, -2, 2, world, status);
	failed |= MPI_Alltoallv("", counts, at, narrow, at, counts, at, narrow, world);
	/* The root of a collective call in place: what it passes for its own data has no meaning. */
	failed |= MPI_Gather((void *)-1, -1, 0, at, 1, wide, 0, world);
	failed |= MPI_Send_c("", 1L << 40, narrow, -1, 7, world);
	failed |= MPI_Barrier(world);
	if (count > 1 && !strcmp(arguments[1], "wait")) {
		struct timespec time = {0, 200000000};
		nanosleep(&time, 0);
	}
	if (count > 1) kill(getpid(), SIGKILL);
	failed |= MPI_Finalize();
	return failed;
}
