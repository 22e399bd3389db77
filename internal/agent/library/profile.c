// A library that is preloaded into the ranks of an MPI job. It stands between the program and its MPI library, as MPI's
// profiling interface provides for (MPI 4.1, 15.2), and counts the calls and their time in a file of one page, which the
// agent reads. Without MPI, or without the folder, it does nothing.
//
// One build serves all MPI libraries: their handles are pointers or integers, and fit into a machine word. On amd64 and
// arm64, an argument is passed in a register or in a slot of the stack of that size. It needs no headers and no version of
// a C library: it is linked without one, and finds the functions that it uses in the process.
#include <stdint.h>

typedef uintptr_t word;
typedef int function();

enum { readWrite = 2, create = 0100, exclusive = 0200, closeOnExec = 02000000, monotonic = 1, pageSize = 4096 };

// The functions of the C library that are used. Those of Linux' two, glibc and musl, agree in them.
struct timespec { long seconds, nanoseconds; };
struct segment { uint32_t type, flags; uint64_t offset, address, physical, fileSize, size, align; };
struct object { uint64_t base; const char *name; const struct segment *segments; uint16_t count; };
extern int clock_gettime(int clock, struct timespec *time);
extern int dl_iterate_phdr(int (*visit)(struct object *, unsigned long, void *), void *data);
extern char *getenv(const char *name);
extern int getpid(void);
extern int snprintf(char *to, unsigned long size, const char *format, ...);
extern int open(const char *path, int flags, ...);
extern long write(int file, const void *data, unsigned long size);
extern int close(int file);
extern int rename(const char *from, const char *to);
extern int unlink(const char *path);
extern void *mmap(void *at, unsigned long size, int protection, int flags, int file, long offset);

// The record. internal/agent/profile/record.go reads it.
enum { maxCalls = 80, sizeClasses = 6 };
struct call { char name[22]; char complete, kind; uint64_t count, nanoseconds, bytes; };
struct record {
	char magic[8];
	uint32_t process, rank, ranks, calls;
	// start and end are those of the time between MPI_Init and MPI_Finalize, by the monotonic clock; end is 0 until then. last is
	// when a call began or ended last, and entered when the call began in which the program is; 0 if it is in none.
	uint64_t start, end, last, entered;
	uint64_t communication, collective;
	uint64_t sizes[sizeClasses];
	struct call call[maxCalls];
	// launch identifies the run of MPI's launcher; it is empty if the agent has not set it.
	char launch[64];
};
_Static_assert(sizeof(struct record) <= pageSize, "the record takes one page");

// SHARED keeps the library small: what all functions do is not part of each.
#define SHARED __attribute__((noinline))

static struct record *record;
// depth is how many calls of MPI the thread is in: MPI libraries call their own functions.
static __thread int depth;

static uint64_t now(void) {
	struct timespec time;
	clock_gettime(monotonic, &time);
	return (uint64_t)time.seconds * 1000000000 + (uint64_t)time.nanoseconds;
}

static void add(uint64_t *to, uint64_t value) { __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }
static void set(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }

// Finding a function of the MPI library. It is read from the process' list of libraries: dlsym does not find those of a library
// that a program such as Python has loaded for itself, and is in a library of its own before glibc 2.34.
struct symbol { uint32_t name; uint8_t info, other; uint16_t section; uint64_t value, size; };
struct search { const char *name; uint32_t hash; void *found; };
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static int equal(const char *a, const char *b) {
	while (*a && *a == *b) a++, b++;
	return *a == *b;
}

static const void *inObject(const struct object *o, uint64_t address) {
	// glibc has relocated the addresses in the dynamic section, except those of the vDSO; musl has not.
	return (const void *)(address < o->base ? o->base + address : address);
}

static int visit(struct object *o, unsigned long size, void *data) {
	enum { dynamicSegment = 2, stringTable = 5, symbolTable = 6, gnuHash = 0x6ffffef5 };
	struct search *s = data;
	(void)size;
	if (o->base == (uint64_t)__ehdr_start) return 0;
	for (int i = 0; i < o->count; i++) {
		if (o->segments[i].type != dynamicSegment) continue;
		const uint64_t *entry = (const uint64_t *)(o->base + o->segments[i].address);
		const char *strings = 0;
		const struct symbol *symbols = 0;
		const uint32_t *table = 0;
		for (; entry[0]; entry += 2) {
			if (entry[0] == stringTable) strings = inObject(o, entry[1]);
			if (entry[0] == symbolTable) symbols = inObject(o, entry[1]);
			if (entry[0] == gnuHash) table = inObject(o, entry[1]);
		}
		if (!strings || !symbols || !table) continue;
		uint32_t buckets = table[0], first = table[1], words = table[2];
		const uint32_t *bucket = (const uint32_t *)((const uint64_t *)(table + 4) + words), *chain = bucket + buckets;
		uint32_t n = buckets ? bucket[s->hash % buckets] : 0;
		if (n < first || !n) continue;
		for (;; n++) {
			uint32_t hash = chain[n - first];
			if ((hash | 1) == (s->hash | 1) && symbols[n].section && equal(strings + symbols[n].name, s->name)) {
				s->found = (void *)(o->base + symbols[n].value);
				return 1;
			}
			if (hash & 1) break;
		}
	}
	return 0;
}

static void *find(const char *name) {
	struct search s = {name, 5381, 0};
	for (const char *c = name; *c; c++) s.hash = s.hash * 33 + (uint8_t)*c;
	dl_iterate_phdr(visit, &s);
	return s.found;
}

// missing stands for a function that no library has: the program could not have called it without this library either.
static int missing(void) {
	enum { errorOther = 15 };
	return errorOther;
}

// resolve returns the function of a name that begins with PMPI.
SHARED static function *resolve(const char *name) {
	function *f = find(name);
	if (!f) f = find(name + 1);
	return f ? f : (function *)missing;
}

// Sizes of messages.
SHARED static int typeSize(word type) {
	static function *f;
	static word null;
	// MPI_DATATYPE_NULL of MPICH and of the standard's binary interface (MPI 5.0, 20). Arguments that have no meaning may have it.
	enum { nullMPICH = 0x0c000000, nullStandard = 0x200 };
	if (!f) {
		null = (word)find("ompi_mpi_datatype_null");
		f = resolve("PMPI_Type_size");
	}
	int size = 0;
	if (!type || type == null || type == nullMPICH || type == nullStandard || f(type, &size) || size < 0) return 0;
	return size;
}

SHARED static int groupSize(word communicator) {
	static function *isInter, *size, *remote;
	if (!size) {
		isInter = resolve("PMPI_Comm_test_inter"), remote = resolve("PMPI_Comm_remote_size"), size = resolve("PMPI_Comm_size");
	}
	int inter = 0, n = 0;
	if (isInter(communicator, &inter) || (inter ? remote : size)(communicator, &n)) return 0;
	return n;
}

// Of counts, one of a type int is in the lower half of its word, and one of a function with the suffix _c takes all of it.
SHARED static uint64_t bytes(int large, word count, word type) {
	int64_t n = large ? (int64_t)count : (int32_t)count;
	return n > 0 ? (uint64_t)n * (uint64_t)typeSize(type) : 0;
}

SHARED static uint64_t sum(int large, word counts, word type, int n) {
	uint64_t total = 0;
	for (int i = 0; i < n && counts; i++) total += large ? ((uint64_t *)counts)[i] : ((uint32_t *)counts)[i];
	return total * (uint64_t)typeSize(type);
}

// MPI_IN_PLACE is 1 or -1. Of MPI_ROOT and MPI_PROC_NULL, as the root of a collective call, all values are negative.
static int isInPlace(word buffer) { return buffer == 1 || buffer == (word)-1; }
static int isNoRoot(word root) { return (int32_t)root < 0; }

// Counting a call.
static struct call *slot(const char *name, char kind) {
	uint32_t n = __atomic_fetch_add(&record->calls, 1, __ATOMIC_RELAXED);
	if (n >= maxCalls) {
		__atomic_store_n(&record->calls, maxCalls, __ATOMIC_RELAXED);
		return 0;
	}
	struct call *c = &record->call[n];
	name += sizeof "MPI_" - 1;
	for (unsigned i = 0; i < sizeof c->name - 1 && name[i]; i++) c->name[i] = name[i];
	c->kind = kind;
	__atomic_store_n(&c->complete, 1, __ATOMIC_RELEASE);
	return c;
}

SHARED static uint64_t enter(void) {
	uint64_t at = now();
	set(&record->entered, at);
	set(&record->last, at);
	return at;
}

SHARED static void leave(struct call **known, const char *name, char kind, uint64_t began, uint64_t size) {
	static struct call none;
	uint64_t at = now(), took = at > began ? at - began : 0;
	struct call *c = __atomic_load_n(known, __ATOMIC_RELAXED);
	if (!c) {
		// Two threads may take a slot each: the agent adds up those of the same name.
		c = slot(name, kind);
		if (!c) c = &none;
		__atomic_store_n(known, c, __ATOMIC_RELAXED);
	}
	add(&c->count, 1);
	add(&c->nanoseconds, took);
	add(&record->communication, took);
	if (kind == 'c') add(&record->collective, took);
	if (size) {
		int class = 0;
		for (uint64_t limit = 64; class < sizeClasses - 1 && size > limit; limit *= 16) class++;
		add(&record->sizes[class], 1);
		add(&c->bytes, size);
	}
	set(&record->entered, 0);
	set(&record->last, at);
}

// Beginning and end.
static uint32_t number(const char *const *names, uint32_t otherwise) {
	for (; *names; names++) {
		const char *text = getenv(*names);
		uint32_t value = 0;
		if (!text || !*text) continue;
		for (; *text >= '0' && *text <= '9'; text++) value = value * 10 + (uint32_t)(*text - '0');
		if (!*text) return value;
	}
	return otherwise;
}

static void begin(void) {
	static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", 0};
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", 0};
	enum { protectionReadWrite = 3, shared = 1, allCanRead = 0644 };
	const char *folder = getenv("MPI_AGENT_PROFILE");
	char fresh[1024], path[1024];
	int process = getpid();
	if (record || !folder || *folder != '/') return;
	if (snprintf(fresh, sizeof fresh, "%s/%d.new", folder, process) >= (int)sizeof fresh) return;
	snprintf(path, sizeof path, "%s/%d.profile", folder, process);
	unlink(fresh);
	int file = open(fresh, readWrite | create | exclusive | closeOnExec, allCanRead);
	if (file < 0) return;
	// Written and not only made as long, so that the page has its place on the disk: a write to memory cannot fail for lack of it.
	static const char empty[pageSize];
	struct record *r = (void *)-1;
	if (write(file, empty, sizeof empty) == (long)sizeof empty) {
		r = mmap(0, pageSize, protectionReadWrite, shared, file, 0);
	}
	close(file);
	if (r == (void *)-1 || rename(fresh, path)) {
		unlink(fresh);
		return;
	}
	r->process = (uint32_t)process, r->rank = number(ranks, 0), r->ranks = number(sizes, 1);
	const char *launch = getenv("MPI_AGENT_LAUNCH");
	for (unsigned i = 0; launch && i < sizeof r->launch - 1 && launch[i]; i++) r->launch[i] = launch[i];
	r->start = r->last = now();
	static const char magic[8] = {'M', 'P', 'I', 'P', 'R', 'O', 'F', '1'};
	for (int i = 0; i < 8; i++) r->magic[i] = magic[i];
	__atomic_store_n(&record, r, __ATOMIC_RELEASE);
}

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int MPI_Init(word count, word arguments) {
	depth++;
	int result = resolve("PMPI_Init")(count, arguments);
	if (!--depth && !result) begin();
	return result;
}

PUBLIC int MPI_Init_thread(word count, word arguments, word required, word provided) {
	depth++;
	int result = resolve("PMPI_Init_thread")(count, arguments, required, provided);
	if (!--depth && !result) begin();
	return result;
}

SHARED static void finish(void) {
	struct record *r = record;
	if (r && !r->end) {
		record = 0;
		set(&r->last, now());
		set(&r->end, r->last);
	}
}

PUBLIC int MPI_Finalize(void) {
	finish();
	depth++;
	int result = resolve("PMPI_Finalize")();
	depth--;
	return result;
}

// WRAP defines a function with so many arguments a1, a2, ... that counts its calls. size is the number of bytes of the data that
// the rank contributes.
#define P1 word a1
#define P2 P1, word a2
#define P3 P2, word a3
#define P4 P3, word a4
#define P5 P4, word a5
#define P6 P5, word a6
#define P7 P6, word a7
#define P8 P7, word a8
#define P9 P8, word a9
#define P10 P9, word a10
#define P11 P10, word a11
#define P12 P11, word a12
#define P13 P12, word a13
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A11 A10, a11
#define A12 A11, a12
#define A13 A12, a13

#define DEFINE(name, shown, isLarge, kind, n, size) \
	PUBLIC int name(P##n) { \
		static function *f; \
		static struct call *known; \
		enum { large = isLarge }; \
		function *call = __atomic_load_n(&f, __ATOMIC_RELAXED); \
		if (!call) { \
			call = resolve("P" #name); \
			__atomic_store_n(&f, call, __ATOMIC_RELAXED); \
		} \
		if (depth || !record) return call(A##n); \
		(void)large; \
		depth++; \
		uint64_t contributed = (size), began = enter(); \
		int result = call(A##n); \
		leave(&known, shown, kind, began, contributed); \
		depth--; \
		return result; \
	}
#define WRAP(name, kind, n) DEFINE(name, #name, 0, kind, n, 0)
// Functions with counts have a second form, for large counts (MPI 4.0, 2.5.8).
#define COUNTED(name, kind, n, size) DEFINE(name, #name, 0, kind, n, size) DEFINE(name##_c, #name, 1, kind, n, size)

#define SENT bytes(large, a2, a3)
COUNTED(MPI_Send, 'p', 6, SENT)
COUNTED(MPI_Ssend, 'p', 6, SENT)
COUNTED(MPI_Rsend, 'p', 6, SENT)
COUNTED(MPI_Bsend, 'p', 6, SENT)
COUNTED(MPI_Isend, 'p', 7, SENT)
COUNTED(MPI_Issend, 'p', 7, SENT)
COUNTED(MPI_Irsend, 'p', 7, SENT)
COUNTED(MPI_Ibsend, 'p', 7, SENT)
COUNTED(MPI_Recv, 'p', 7, 0)
COUNTED(MPI_Irecv, 'p', 7, 0)
COUNTED(MPI_Mrecv, 'p', 5, 0)
COUNTED(MPI_Sendrecv, 'p', 12, SENT)
COUNTED(MPI_Sendrecv_replace, 'p', 9, SENT)
WRAP(MPI_Probe, 'p', 4)
WRAP(MPI_Iprobe, 'p', 5)
WRAP(MPI_Mprobe, 'p', 5)
WRAP(MPI_Start, 'p', 1)
WRAP(MPI_Startall, 'p', 2)
WRAP(MPI_Wait, 'w', 2)
WRAP(MPI_Waitall, 'w', 3)
WRAP(MPI_Waitany, 'w', 4)
WRAP(MPI_Waitsome, 'w', 5)
WRAP(MPI_Test, 'w', 3)
WRAP(MPI_Testall, 'w', 4)
WRAP(MPI_Testany, 'w', 5)
WRAP(MPI_Testsome, 'w', 5)

// A collective call and its form that does not block, which has one argument more, and whose time is that to start it.
#define COLLECTIVE(name, starting, n, m, size) COUNTED(name, 'c', n, size) COUNTED(starting, 'p', m, size)
WRAP(MPI_Barrier, 'c', 1)
WRAP(MPI_Ibarrier, 'p', 2)
COLLECTIVE(MPI_Bcast, MPI_Ibcast, 5, 6, isNoRoot(a4) ? 0 : bytes(large, a2, a3))
COLLECTIVE(MPI_Reduce, MPI_Ireduce, 7, 8, isNoRoot(a6) ? 0 : bytes(large, a3, a4))
COLLECTIVE(MPI_Allreduce, MPI_Iallreduce, 6, 7, bytes(large, a3, a4))
COLLECTIVE(MPI_Scan, MPI_Iscan, 6, 7, bytes(large, a3, a4))
COLLECTIVE(MPI_Exscan, MPI_Iexscan, 6, 7, bytes(large, a3, a4))
COLLECTIVE(MPI_Reduce_scatter, MPI_Ireduce_scatter, 6, 7, sum(large, a3, a4, groupSize(a6)))
COLLECTIVE(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, 6, 7, bytes(large, a3, a4) * (uint64_t)groupSize(a6))
COLLECTIVE(MPI_Gather, MPI_Igather, 8, 9, isInPlace(a1) || isNoRoot(a7) ? 0 : bytes(large, a2, a3))
COLLECTIVE(MPI_Gatherv, MPI_Igatherv, 9, 10, isInPlace(a1) || isNoRoot(a8) ? 0 : bytes(large, a2, a3))
COLLECTIVE(MPI_Scatter, MPI_Iscatter, 8, 9, isInPlace(a4) || isNoRoot(a7) ? 0 : bytes(large, a5, a6))
COLLECTIVE(MPI_Scatterv, MPI_Iscatterv, 9, 10, isInPlace(a5) || isNoRoot(a8) ? 0 : bytes(large, a6, a7))
COLLECTIVE(MPI_Allgather, MPI_Iallgather, 7, 8, bytes(large, a5, a6))
COLLECTIVE(MPI_Allgatherv, MPI_Iallgatherv, 8, 9, isInPlace(a1) ? 0 : bytes(large, a2, a3))
COLLECTIVE(MPI_Alltoall, MPI_Ialltoall, 7, 8, bytes(large, a5, a6) * (uint64_t)groupSize(a7))
COLLECTIVE(MPI_Alltoallv, MPI_Ialltoallv, 9, 10, isInPlace(a1) ? 0 : sum(large, a2, a4, groupSize(a9)))
COLLECTIVE(MPI_Alltoallw, MPI_Ialltoallw, 9, 10, 0)

// Communication of one side.
COUNTED(MPI_Put, 'p', 8, SENT)
COUNTED(MPI_Get, 'p', 8, 0)
COUNTED(MPI_Accumulate, 'p', 9, SENT)
WRAP(MPI_Win_fence, 'c', 2)
WRAP(MPI_Win_lock, 'p', 4)
WRAP(MPI_Win_unlock, 'p', 2)
WRAP(MPI_Win_flush, 'p', 2)
WRAP(MPI_Win_flush_all, 'p', 1)
WRAP(MPI_Win_complete, 'p', 1)
WRAP(MPI_Win_wait, 'p', 1)

// Fortran. Its functions have other names, and get their arguments by reference, with one more for the error (MPI 4.1, 19.1.5). Those of
// Open MPI call the functions of C by their names that begin with PMPI, and so do those of MPICH and Intel MPI for the module mpi_f08 that
// have no buffer: they are counted here. The others of MPICH and Intel MPI call functions of C that are counted above.
static int isOpenMPI(void) {
	static int known;
	if (!known) known = find("ompi_mpi_comm_world") ? 1 : -1;
	return known > 0;
}

static int32_t value(word reference) { return *(int32_t *)reference; }

// inC returns a handle of C; only Open MPI has other handles in Fortran.
typedef word conversion(int);
SHARED static word inC(conversion **known, const char *name, word reference) {
	if (!*known) *known = (conversion *)find(name);
	return *known ? (*known)(value(reference)) : 0;
}

SHARED static uint64_t fortranBytes(word count, word type) {
	static conversion *f;
	return isOpenMPI() ? bytes(0, (word)value(count), inC(&f, "PMPI_Type_f2c", type)) : 0;
}

SHARED static uint64_t fortranGroup(word communicator) {
	static conversion *f;
	return isOpenMPI() ? (uint64_t)groupSize(inC(&f, "PMPI_Comm_f2c", communicator)) : 0;
}

SHARED static function *resolveFortran(const char *name) {
	function *f = find(name);
	return f ? f : (function *)missing;
}

#define FORTRAN_BEGIN(name, n) \
	PUBLIC void name(P##n) { \
		depth++; \
		resolveFortran(#name)(A##n); \
		if (!--depth && (!a##n || !value(a##n))) begin(); \
	}
#define FORTRAN_END(name) \
	PUBLIC void name(P1) { \
		finish(); \
		depth++; \
		resolveFortran(#name)(A1); \
		depth--; \
	}
FORTRAN_BEGIN(mpi_init_, 1)
FORTRAN_BEGIN(mpi_init_f08_, 1)
FORTRAN_BEGIN(mpi_init_thread_, 3)
FORTRAN_BEGIN(mpi_init_thread_f08_, 3)
FORTRAN_END(mpi_finalize_)
FORTRAN_END(mpi_finalize_f08_)

#define DEFINE_FORTRAN(name, shown, isCounted, kind, n, size) \
	PUBLIC void name(P##n) { \
		static function *f; \
		static struct call *known; \
		function *call = __atomic_load_n(&f, __ATOMIC_RELAXED); \
		if (!call) { \
			call = resolveFortran(#name); \
			__atomic_store_n(&f, call, __ATOMIC_RELAXED); \
		} \
		if (depth || !record || !(isCounted)) { \
			call(A##n); \
			return; \
		} \
		depth++; \
		uint64_t contributed = (size), began = enter(); \
		call(A##n); \
		leave(&known, shown, kind, began, contributed); \
		depth--; \
	}
#define FORTRAN(lower, name, kind, n, size) \
	DEFINE_FORTRAN(mpi_##lower##_, #name, isOpenMPI(), kind, n, size) DEFINE_FORTRAN(mpi_##lower##_f08_, #name, 1, kind, n, size)

// Of collective functions that have no meaning for one of their counts in some ranks, the size of the data is unknown: the values of
// Fortran for them, such as MPI_IN_PLACE, differ between libraries.
#define FORTRAN_SENT fortranBytes(a2, a3)
FORTRAN(send, MPI_Send, 'p', 7, FORTRAN_SENT)
FORTRAN(ssend, MPI_Ssend, 'p', 7, FORTRAN_SENT)
FORTRAN(rsend, MPI_Rsend, 'p', 7, FORTRAN_SENT)
FORTRAN(bsend, MPI_Bsend, 'p', 7, FORTRAN_SENT)
FORTRAN(isend, MPI_Isend, 'p', 8, FORTRAN_SENT)
FORTRAN(issend, MPI_Issend, 'p', 8, FORTRAN_SENT)
FORTRAN(irsend, MPI_Irsend, 'p', 8, FORTRAN_SENT)
FORTRAN(ibsend, MPI_Ibsend, 'p', 8, FORTRAN_SENT)
FORTRAN(recv, MPI_Recv, 'p', 8, 0)
FORTRAN(irecv, MPI_Irecv, 'p', 8, 0)
FORTRAN(mrecv, MPI_Mrecv, 'p', 6, 0)
FORTRAN(sendrecv, MPI_Sendrecv, 'p', 13, FORTRAN_SENT)
FORTRAN(sendrecv_replace, MPI_Sendrecv_replace, 'p', 10, FORTRAN_SENT)
FORTRAN(probe, MPI_Probe, 'p', 5, 0)
FORTRAN(iprobe, MPI_Iprobe, 'p', 6, 0)
FORTRAN(mprobe, MPI_Mprobe, 'p', 6, 0)
FORTRAN(start, MPI_Start, 'p', 2, 0)
FORTRAN(startall, MPI_Startall, 'p', 3, 0)
FORTRAN(wait, MPI_Wait, 'w', 3, 0)
FORTRAN(waitall, MPI_Waitall, 'w', 4, 0)
FORTRAN(waitany, MPI_Waitany, 'w', 5, 0)
FORTRAN(waitsome, MPI_Waitsome, 'w', 6, 0)
FORTRAN(test, MPI_Test, 'w', 4, 0)
FORTRAN(testall, MPI_Testall, 'w', 5, 0)
FORTRAN(testany, MPI_Testany, 'w', 6, 0)
FORTRAN(testsome, MPI_Testsome, 'w', 6, 0)
FORTRAN(barrier, MPI_Barrier, 'c', 2, 0)
FORTRAN(ibarrier, MPI_Ibarrier, 'p', 3, 0)
FORTRAN(bcast, MPI_Bcast, 'c', 6, value(a4) < 0 ? 0 : fortranBytes(a2, a3))
FORTRAN(ibcast, MPI_Ibcast, 'p', 7, value(a4) < 0 ? 0 : fortranBytes(a2, a3))
FORTRAN(reduce, MPI_Reduce, 'c', 8, value(a6) < 0 ? 0 : fortranBytes(a3, a4))
FORTRAN(ireduce, MPI_Ireduce, 'p', 9, value(a6) < 0 ? 0 : fortranBytes(a3, a4))
FORTRAN(allreduce, MPI_Allreduce, 'c', 7, fortranBytes(a3, a4))
FORTRAN(iallreduce, MPI_Iallreduce, 'p', 8, fortranBytes(a3, a4))
FORTRAN(scan, MPI_Scan, 'c', 7, fortranBytes(a3, a4))
FORTRAN(iscan, MPI_Iscan, 'p', 8, fortranBytes(a3, a4))
FORTRAN(exscan, MPI_Exscan, 'c', 7, fortranBytes(a3, a4))
FORTRAN(iexscan, MPI_Iexscan, 'p', 8, fortranBytes(a3, a4))
FORTRAN(reduce_scatter, MPI_Reduce_scatter, 'c', 7, 0)
FORTRAN(ireduce_scatter, MPI_Ireduce_scatter, 'p', 8, 0)
FORTRAN(reduce_scatter_block, MPI_Reduce_scatter_block, 'c', 7, fortranBytes(a3, a4) * fortranGroup(a6))
FORTRAN(ireduce_scatter_block, MPI_Ireduce_scatter_block, 'p', 8, fortranBytes(a3, a4) * fortranGroup(a6))
FORTRAN(gather, MPI_Gather, 'c', 9, 0)
FORTRAN(igather, MPI_Igather, 'p', 10, 0)
FORTRAN(gatherv, MPI_Gatherv, 'c', 10, 0)
FORTRAN(igatherv, MPI_Igatherv, 'p', 11, 0)
FORTRAN(scatter, MPI_Scatter, 'c', 9, 0)
FORTRAN(iscatter, MPI_Iscatter, 'p', 10, 0)
FORTRAN(scatterv, MPI_Scatterv, 'c', 10, 0)
FORTRAN(iscatterv, MPI_Iscatterv, 'p', 11, 0)
FORTRAN(allgather, MPI_Allgather, 'c', 8, fortranBytes(a5, a6))
FORTRAN(iallgather, MPI_Iallgather, 'p', 9, fortranBytes(a5, a6))
FORTRAN(allgatherv, MPI_Allgatherv, 'c', 9, 0)
FORTRAN(iallgatherv, MPI_Iallgatherv, 'p', 10, 0)
FORTRAN(alltoall, MPI_Alltoall, 'c', 8, fortranBytes(a5, a6) * fortranGroup(a7))
FORTRAN(ialltoall, MPI_Ialltoall, 'p', 9, fortranBytes(a5, a6) * fortranGroup(a7))
FORTRAN(alltoallv, MPI_Alltoallv, 'c', 10, 0)
FORTRAN(ialltoallv, MPI_Ialltoallv, 'p', 11, 0)
FORTRAN(alltoallw, MPI_Alltoallw, 'c', 10, 0)
FORTRAN(ialltoallw, MPI_Ialltoallw, 'p', 11, 0)
FORTRAN(put, MPI_Put, 'p', 9, FORTRAN_SENT)
FORTRAN(get, MPI_Get, 'p', 9, 0)
FORTRAN(accumulate, MPI_Accumulate, 'p', 10, FORTRAN_SENT)
FORTRAN(win_fence, MPI_Win_fence, 'c', 3, 0)
FORTRAN(win_lock, MPI_Win_lock, 'p', 5, 0)
FORTRAN(win_unlock, MPI_Win_unlock, 'p', 3, 0)
FORTRAN(win_flush, MPI_Win_flush, 'p', 3, 0)
FORTRAN(win_flush_all, MPI_Win_flush_all, 'p', 2, 0)
FORTRAN(win_complete, MPI_Win_complete, 'p', 2, 0)
FORTRAN(win_wait, MPI_Win_wait, 'p', 2, 0)
