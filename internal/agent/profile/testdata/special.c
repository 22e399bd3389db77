/* Calls functions of MPI in unusual ways, of which its argument names one. Its exit code is 0 if all of them are as in a process without a profile. */
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef INTEGERS
typedef int Handle;
#else
typedef struct handle *Handle;
#endif
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Barrier(Handle);
int MPI_Send(const void *, int, Handle, int, int, Handle), MPI_Reduce_scatter(const void *, void *, const int *, Handle, Handle, Handle);
int MPI_Alltoallv(const void *, const int *, const int *, Handle, void *, const int *, const int *, Handle, Handle);
extern void (*handleErrors)(void);
extern volatile int sends;

static Handle world = (Handle)1, narrow = (Handle)4;
static jmp_buf place;

static void *send(void *failed) {
	*(int *)failed |= MPI_Send("", 1, narrow, -1, 7, world);
	return 0;
}

/* Calls a function of MPI further down on the stack. */
static int deeper(int n) {
	volatile char space[1000] = {0};
	return space[n] + (n ? deeper(n - 1) : MPI_Barrier(world));
}

static void jump(void) { longjmp(place, 1); }

int main(int count, char **arguments) {
	const char *way = arguments[count - 1];
	int failed = MPI_Init(&count, &arguments);
	if (!strcmp(way, "fork")) {
		/* As in a process of Python's module multiprocessing. */
		int status, child = fork();
		if (!child) _exit(MPI_Finalize());
		failed |= waitpid(child, &status, 0) != child || status;
	}
	if (!strcmp(way, "thread")) {
		/* A thread is in a call when MPI ends. */
		pthread_t thread;
		int other = 0;
		failed |= pthread_create(&thread, 0, send, &other);
		while (!sends) usleep(1000);
		failed |= MPI_Finalize() | pthread_join(thread, 0) | other;
		return failed;
	}
	if (!strcmp(way, "longjmp")) {
		handleErrors = jump;
		if (!setjmp(place)) return MPI_Send("", 1, narrow, -9, 7, world) | 1;
		failed |= MPI_Barrier(world);
		if (!setjmp(place)) return MPI_Send("", 1, narrow, -9, 7, world) | 1;
		failed |= deeper(5);
	}
	if (!strcmp(way, "intercommunicator")) {
		/* One count for each rank of the own group, or of the other one. */
		int own[] = {1, 2, 1000}, others[] = {1, 2, 3, 1000}, at[4];
		failed |= MPI_Reduce_scatter("", at, own, narrow, (Handle)1, (Handle)2);
		failed |= MPI_Alltoallv("", others, at, narrow, at, others, at, narrow, (Handle)2);
	}
	failed |= MPI_Barrier(world);
	return failed | MPI_Finalize();
}
