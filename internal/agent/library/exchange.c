// A library that measures the MPI messages of a runtime's test (internal/runtimetest). It is preloaded into a shell, and runs instead of
// it: it loads the MPI library that belongs to the image's mpirun, exchanges messages between ranks 0 and 1, and prints latency and
// bandwidth. Without the variable MPI_RUNTIME_TEST, which only the test sets, it does nothing.
//
// One build serves all MPI libraries, as profile.c does. It needs no headers and no version of a C library: it is linked without one, and
// finds the functions that it uses in the process.
#include <stdint.h>

typedef uintptr_t handle;

enum { lazy = 1, global = 0x100, standardOutput = 1, pathSize = 4096 };

// The functions of the C library that are used. Those of Linux' two, glibc and musl, agree in them.
extern unsigned alarm(unsigned seconds);
extern int access(const char *path, int mode);
extern int dlclose(void *library);
extern char *dlerror(void);
extern void *dlopen(const char *path, int flags);
extern void *dlsym(void *library, const char *name);
extern void exit(int code) __attribute__((noreturn));
extern char *getenv(const char *name);
extern void qsort(void *array, unsigned long count, unsigned long size, int (*compare)(const void *, const void *));
extern char *realpath(const char *path, char *to);
extern int snprintf(char *to, unsigned long size, const char *format, ...);
extern int unsetenv(const char *name);
extern int usleep(unsigned microseconds);
extern long write(int file, const void *data, unsigned long size);

#define PRINT(...) do { \
		char line[1024]; \
		int printed = snprintf(line, sizeof line, "mpi-runtime-test: " __VA_ARGS__); \
		if (printed >= (int)sizeof line) printed = sizeof line - 1; \
		(void)!write(standardOutput, line, (unsigned long)printed); \
	} while (0)

// The MPI library. Its handles are pointers in Open MPI, and integers of 32 bits in MPICH and Intel MPI, whose values their common binary
// interface fixes (https://www.mpich.org/abi). Either kind is passed in a register or in a slot of the stack of a machine word.
static struct {
	int (*Init)(int *, char ***), (*Finalize)(void), (*Get_library_version)(char *, int *);
	int (*Comm_rank)(handle, int *), (*Comm_size)(handle, int *);
	int (*Send)(const void *, int, handle, int, int, handle), (*Recv)(void *, int, handle, int, int, handle, void *);
	int (*Iprobe)(int, int, handle, int *, void *);
	double (*Wtime)(void);
	handle world, byte;
	void *statusIgnore;
} mpi;

static int find(void *library, int isOpenMPI) {
	mpi.world = (handle)dlsym(library, "ompi_mpi_comm_world");
	mpi.byte = (handle)dlsym(library, "ompi_mpi_byte");
	mpi.statusIgnore = 0;
	if (isOpenMPI != (mpi.world && mpi.byte)) return 0;
	if (!isOpenMPI) mpi.world = 0x44000000, mpi.byte = 0x4c00010d, mpi.statusIgnore = (void *)1;
#define FIND(name) (mpi.name = (__typeof__(mpi.name))dlsym(library, "MPI_" #name))
	return FIND(Init) && FIND(Finalize) && FIND(Get_library_version) && FIND(Comm_rank) && FIND(Comm_size) && FIND(Send) && FIND(Recv) && FIND(Iprobe) &&
	       FIND(Wtime);
}

// reasons are why libraries could not be loaded, one after the other.
static char reasons[900];

static void addReason(const char *path, const char *text) {
	unsigned long used = 0;
	while (reasons[used]) used++;
	snprintf(reasons + used, sizeof reasons - used, "%s%s%s", used ? "; " : "", path, text);
}

// try loads a library from a folder or, without one, from where programs find it.
static int try(const char *folder, const char *below, const char *name, int isOpenMPI) {
	char path[pathSize];
	if (snprintf(path, sizeof path, "%s%s%s", folder, below, name) >= (int)sizeof path) return 0;
	void *library = dlopen(path, lazy);
	if (!library) {
		if (!*folder || !access(path, 0)) addReason("", dlerror());
		return 0;
	}
	if (find(library, isOpenMPI)) {
		// Parts of the library that it loads itself may need its symbols.
		dlopen(path, lazy | global);
		return 1;
	}
	addReason(path, ": belongs to another MPI than the launcher");
	dlclose(library);
	return 0;
}

// load finds the MPI library of a launcher: next to it, then where the image's programs find it, then where Intel MPI says that it is.
static int load(const char *launcher, int isOpenMPI) {
	static const char *const openMPI[] = {"libmpi.so.40", "libmpi.so", 0}, *const mpich[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so", 0};
	static const char *const below[] = {"/lib/", "/lib64/", "/lib/release/", 0};
	const char *const *names = isOpenMPI ? openMPI : mpich, *intel = getenv("I_MPI_ROOT");
	char prefix[pathSize] = "";
	// The folder above that of the program, which may have several names.
	if (*launcher && realpath(launcher, prefix)) {
		char *end = prefix;
		while (*end) end++;
		for (int i = 0; i < 2 && end > prefix; i++) {
			while (*--end != '/') {}
			*end = 0;
		}
		for (int i = 0; below[i]; i++)
			for (int n = 0; names[n]; n++)
				if (*prefix && try(prefix, below[i], names[n], isOpenMPI)) return 1;
	}
	for (int n = 0; names[n]; n++)
		if (try("", "", names[n], isOpenMPI)) return 1;
	for (int i = 0; intel && *intel && !isOpenMPI && below[i]; i++)
		for (int n = 0; names[n]; n++)
			if (try(intel, below[i], names[n], isOpenMPI)) return 1;
	return 0;
}

// The sizes of messages and the number of round trips, the ranks that exchange messages, and the tag of the message to the others.
enum { length = 4 << 20, most = 10000, ping = 0, pong = 1, done = 1 };

static char buffer[length];
static double trips[most + 1];

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void send(int size, int to, int tag) { mpi.Send(buffer, size, mpi.byte, to, tag, mpi.world); }
static void receive(int size, int from, int tag) { mpi.Recv(buffer, size, mpi.byte, from, tag, mpi.world, mpi.statusIgnore); }

// roundTrip returns the median in seconds, of those after the first ones. The first byte of a message marks the last one.
static double roundTrip(int rank, int size, int first, double duration) {
	double began = mpi.Wtime();
	int n = 0;
	buffer[0] = 0;
	while (!buffer[0]) {
		double start = mpi.Wtime();
		if (rank == ping) {
			buffer[0] = n >= first && (start - began > duration || n == most);
			send(size, pong, 0);
			receive(size, pong, 0);
		} else {
			receive(size, ping, 0);
			send(size, ping, 0);
		}
		trips[n++] = mpi.Wtime() - start;
	}
	qsort(trips + first, (unsigned long)(n - first), sizeof *trips, compare);
	return trips[first + (n - first) / 2];
}

static void exchange(void) {
	int rank = 0, size = 0, arrived = 0;
	mpi.Init(0, 0);
	mpi.Comm_rank(mpi.world, &rank);
	mpi.Comm_size(mpi.world, &size);
	if (size < 2) {
		PRINT("not measured: other-mpi\n");
	} else if (rank <= pong) {
		double small = roundTrip(rank, 8, 100, 1), large = roundTrip(rank, length, 3, 2);
		if (rank == ping) {
			int end;
			mpi.Get_library_version(buffer, &end);
			for (end = 0; buffer[end] && buffer[end] != '\n';) end++;
			PRINT("latency %.0f ns, bandwidth %.0f B/s, by %.*s\n", small / 2 * 1e9, 2 * length / large, end, buffer);
			for (int other = 2; other < size; other++) send(1, other, done);
		}
	} else {
		// A rank that waits in MPI would use a CPU.
		for (; !arrived; usleep(20000)) mpi.Iprobe(ping, done, mpi.world, &arrived, mpi.statusIgnore);
		receive(1, ping, done);
	}
	mpi.Finalize();
}

__attribute__((constructor)) static void run(void) {
	const char *launcher = getenv("MPI_RUNTIME_TEST");
	if (!launcher) return;
	// Programs that MPI starts are none of the ranks.
	unsetenv("LD_PRELOAD");
	alarm(60); // ends a rank that waits for a message in vain
	if (load(launcher, getenv("OMPI_COMM_WORLD_SIZE") != 0)) {
		exchange();
	} else {
		PRINT("%s\n", reasons);
		PRINT("not measured: library\n");
	}
	// MPICH tells its launcher only now that the rank has ended well.
	exit(0);
}
