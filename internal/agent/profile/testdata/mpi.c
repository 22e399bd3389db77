/* A library with MPI's interface for one process, whose functions take 20 ms, and no time with -DFAST except for the beginning. Its handles are
   pointers, or integers with -DINTEGERS. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef INTEGERS
typedef int Handle;
#else
typedef struct handle *Handle;
#endif

static int sleepShortly(void) {
	struct timespec time = {0, 20000000};
	return nanosleep(&time, 0);
}
#ifdef FAST
static int take(void) { return 0; }
#else
static int take(void) { return sleepShortly(); }
#endif

#define DEFINE(name, ...) \
	int PMPI_##name(__VA_ARGS__); \
	int MPI_##name(__VA_ARGS__) __attribute__((weak, alias("PMPI_" #name))); \
	int PMPI_##name(__VA_ARGS__)

/* The handler of errors gets those of a rank that does not exist. */
void (*handleErrors)(void);
/* It is set once a message is being sent. */
volatile int sends;

DEFINE(Init, int *count, char ***arguments) { return count && arguments ? sleepShortly() : 1; }
DEFINE(Finalize, void) { return take(); }
DEFINE(Type_size, Handle type, int *size) { *size = (int)(long)type; return 0; }
/* Communicator 2 is an intercommunicator of a group of 2 ranks, and 3 others. */
DEFINE(Comm_test_inter, Handle communicator, int *flag) { *flag = communicator == (Handle)2; return !communicator; }
DEFINE(Comm_size, Handle communicator, int *size) { *size = communicator == (Handle)2 ? 2 : 3; return !communicator; }
DEFINE(Comm_remote_size, Handle communicator, int *size) { *size = 3; return communicator != (Handle)2; }
DEFINE(Send, const void *data, int count, Handle type, int to, int tag, Handle communicator) {
	sends = 1;
	if (to == -9 && handleErrors) handleErrors();
	return !data || count < 0 || !type || to != -1 || tag != 7 || !communicator ? 1 : take();
}
DEFINE(Reduce_scatter, const void *data, void *to, const int counts[], Handle type, Handle operation, Handle communicator) {
	return data && to && counts && type && operation && communicator ? take() : 1;
}
/* A library may call its own functions: they are no calls of the program. */
DEFINE(Barrier, Handle communicator) { return communicator ? MPI_Send("", 0, (Handle)8, -1, 7, communicator) : 1; }
DEFINE(Sendrecv, const void *data, int count, Handle type, int to, int tag, void *buffer, int size, Handle other, int from, int second, Handle communicator, void *status) {
	int expected = data && count == 10 && type == (Handle)8 && to == -1 && tag == 1 && buffer && size == 11 && other == (Handle)4 && from == -2 && second == 2 &&
	               communicator && status;
	return expected ? take() : 1;
}
DEFINE(Alltoallv, const void *data, const int counts[], const int at[], Handle type, void *to, const int sizes[], const int offsets[], Handle other, Handle communicator) {
	return data && counts && at && type && to && sizes && offsets && other && communicator ? take() : 1;
}
DEFINE(Gather, const void *data, int count, Handle type, void *to, int size, Handle other, int root, Handle communicator) {
	(void)data, (void)count, (void)type, (void)size, (void)other;
	return to && root == 0 && communicator ? take() : 1;
}
DEFINE(Send_c, const void *data, long count, Handle type, int to, int tag, Handle communicator) {
	return !data || count != 1L << 40 || !type || to != -1 || tag != 7 || !communicator ? 1 : take();
}

/* The functions for Fortran: with pointers as those of Open MPI, which call the functions of C by their other names; with integers as those of
   MPICH, of which only those of the module mpi_f08 without a buffer do. */
#ifdef INTEGERS
#define IN_FORTRAN(name) MPI_##name
static Handle inC(int handle) { return handle; }
#else
#define IN_FORTRAN(name) PMPI_##name
int ompi_mpi_comm_world;
Handle PMPI_Type_f2c(int handle) { return (Handle)(long)handle; }
Handle PMPI_Comm_f2c(int handle) { return (Handle)(long)handle; }
static Handle inC(int handle) { return PMPI_Type_f2c(handle); }
#endif
static int none;
static char **nothing;
void mpi_init_(int *error) { *error = IN_FORTRAN(Init)(&none, &nothing); }
void mpi_init_f08_(int *error) { *error = PMPI_Init(&none, &nothing); }
void mpi_finalize_(int *error) { *error = IN_FORTRAN(Finalize)(); }
void mpi_finalize_f08_(int *error) { *error = PMPI_Finalize(); }
void mpi_send_(void *data, int *count, int *type, int *to, int *tag, int *communicator, int *error) {
	*error = IN_FORTRAN(Send)(data, *count, inC(*type), *to, *tag, inC(*communicator));
}
void mpi_barrier_(int *communicator, int *error) { *error = IN_FORTRAN(Barrier)(inC(*communicator)); }
/* The error is optional in this module. */
void mpi_barrier_f08_(int *communicator, int *error) {
	int result = PMPI_Barrier(inC(*communicator));
	if (error) *error = result;
}
