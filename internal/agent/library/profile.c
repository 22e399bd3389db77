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

enum { readOnly = 0, readWrite = 2, create = 0100, exclusive = 0200, closeOnExec = 02000000, monotonic = 1, pageSize = 4096 };

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
extern long read(int file, void *data, unsigned long size);
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
	uint64_t communication;
	uint64_t sizes[sizeClasses];
	struct call call[maxCalls];
	// launch identifies the run of MPI's launcher; it is empty if the agent has not set it.
	char launch[64];
};
_Static_assert(sizeof(struct record) <= pageSize, "the record takes one page");

// SHARED keeps the library small: what all functions do is not part of each.
#define SHARED __attribute__((noinline))

// record is set between MPI_Init and MPI_Finalize. Other threads can be in calls then: a call reads it once. The page stays mapped.
static struct record *record;
// outermost is the call that the thread is in, 0 if it is in none: MPI libraries call their own functions.
static __thread const struct counted *outermost;

// The parts of the compiler's library by which an exception leaves the counters right. A process without exceptions may not have them.
__asm__(".weak _Unwind_Resume\n.weak __gcc_personality_v0");

static uint64_t kernelTime(void) {
	struct timespec time;
	clock_gettime(monotonic, &time);
	return (uint64_t)time.seconds * 1000000000 + (uint64_t)time.nanoseconds;
}

// The counter of time that x86's CPUs have takes half as long to read as the kernel's clock. Where the kernel itself measures time by it, it is
// the same on all CPUs and has a constant rate, which follows from two readings of both.
// gap is how many ticks the reading took.
static struct reading { uint64_t ticks, nanoseconds, gap; } loaded;
// scale is nanoseconds per tick, in units of 2^-scaleBits; 0 if the kernel's clock is used. It is set before record is.
enum { scaleBits = 32 };
static uint64_t scale;

#ifdef __x86_64__
static uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }

static int countsTicks(void) {
	static const char source[] = "tsc\n";
	char name[sizeof source];
	int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", readOnly | closeOnExec);
	if (file < 0) return 0;
	long size = read(file, name, sizeof name);
	close(file);
	if (size != (long)sizeof source - 1) return 0;
	for (int i = 0; i < size; i++) if (name[i] != source[i]) return 0;
	return 1;
}
#else
static uint64_t ticks(void) { return 0; }
static int countsTicks(void) { return 0; }
#endif

// readClocks reads both clocks at the same time, as far as possible: the process can lose its CPU between them, and the first call is a slow one.
static struct reading readClocks(void) {
	enum { tries = 5 };
	struct reading r = {0, kernelTime(), UINT64_MAX};
	for (int i = 0; i < tries; i++) {
		uint64_t before = ticks(), time = kernelTime(), gap = ticks() - before;
		if (gap < r.gap) r = (struct reading){before + gap / 2, time, gap};
	}
	return r;
}

static uint64_t now(void) {
	if (!scale) return kernelTime();
	return loaded.nanoseconds + (uint64_t)((unsigned __int128)(ticks() - loaded.ticks) * scale >> scaleBits);
}

// calibrate finds out the rate of the counter since the library was loaded: MPI_Init takes long enough for a precise one.
static void calibrate(void) {
	enum { shortest = 5000000, precision = 10000 };
	struct reading r = readClocks();
	uint64_t passed = r.ticks - loaded.ticks, took = r.nanoseconds - loaded.nanoseconds;
	if (took < shortest || r.ticks <= loaded.ticks || loaded.gap + r.gap > passed / precision || !countsTicks()) return;
	// A division of more than 64 bits would need the compiler's library.
	for (; took >> (64 - scaleBits); took >>= 1) passed >>= 1;
	scale = (took << scaleBits) / passed;
}

static void add(uint64_t *to, uint64_t value) { __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }
static void set(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }

// Finding a function of the MPI library. It is read from the process' list of libraries: dlsym does not find those of a library
// that a program such as Python has loaded for itself, and is in a library of its own before glibc 2.34.
struct symbol { uint32_t name; uint8_t info, other; uint16_t section; uint64_t value, size; };
// A search is among all libraries or, if most is not 0, among those of the first ones that come after this library.
struct search { const char *name; uint32_t hash; int most, isAfter; void *found; };
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
	if (s->most && !--s->most) return 1;
	if (o->base == (uint64_t)__ehdr_start) {
		s->isAfter = 1;
		return 0;
	}
	if (s->most && !s->isAfter) return 0;
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

static void *findAmong(int most, const char *name) {
	struct search s = {name, 5381, most, 0, 0};
	for (const char *c = name; *c; c++) s.hash = s.hash * 33 + (uint8_t)*c;
	dl_iterate_phdr(visit, &s);
	return s.found;
}

static void *find(const char *name) { return findAmong(0, name); }

// initial is one more than the number of libraries with which the process began, the first ones of its list.
static int initial = 1;

static int count(struct object *o, unsigned long size, void *data) {
	(void)o, (void)size;
	++*(int *)data;
	return 0;
}

__attribute__((constructor)) static void load(void) {
	loaded = readClocks();
	dl_iterate_phdr(count, &initial);
}

// missing stands for a function that no library has: the program could not have called it without this library either.
static int missing(void) {
	enum { errorOther = 15 };
	return errorOther;
}

// resolve returns the function of a name that begins with PMPI, or pmpi in Fortran, of the MPI library itself.
SHARED static function *resolve(const char *name) {
	function *f = find(name);
	if (!f) f = find(name + 1);
	return f ? f : (function *)missing;
}

// resolveNext returns the function that the program would call without this library. That is one of another tool with MPI's profiling
// interface, if the program is linked with it. Of libraries that a program has loaded for itself, it is unknown which of them
// calls: one can have stubs for programs without MPI, so that the function is that of the MPI library.
SHARED static function *resolveNext(const char *name) {
	function *f = findAmong(initial, name + 1);
	return f ? f : resolve(name);
}

// KNOWN returns the result of a function that finds another one, which it calls once.
#define KNOWN(resolve, name) ({ \
		static function *known; \
		function *f = __atomic_load_n(&known, __ATOMIC_RELAXED); \
		if (!f) f = resolve(name), __atomic_store_n(&known, f, __ATOMIC_RELAXED); \
		f; \
	})

// Sizes of messages.
static word nullOpenMPI(void) {
	static word known;
	word null = __atomic_load_n(&known, __ATOMIC_RELAXED);
	// Without Open MPI, it is 1, which is no datatype.
	if (!null) {
		null = (word)find("ompi_mpi_datatype_null");
		if (!null) null = 1;
		__atomic_store_n(&known, null, __ATOMIC_RELAXED);
	}
	return null;
}

SHARED static int typeSize(word type) {
	// MPI_DATATYPE_NULL of MPICH and of the standard's binary interface (MPI 5.0, 20). Arguments that have no meaning may have it.
	enum { nullMPICH = 0x0c000000, nullStandard = 0x200 };
	int size = 0;
	if (!type || type == nullMPICH || type == nullStandard || type == nullOpenMPI()) return 0;
	return KNOWN(resolve, "PMPI_Type_size")(type, &size) || size < 0 ? 0 : size;
}

// groupSize returns the number of the ranks of an own group, and targets that of the ranks to which one sends: in an intercommunicator, these are
// those of the other group.
SHARED static int groupSize(word communicator) {
	int n = 0;
	return KNOWN(resolve, "PMPI_Comm_size")(communicator, &n) ? 0 : n;
}

SHARED static int targets(word communicator) {
	int isInter = 0, n = 0;
	if (KNOWN(resolve, "PMPI_Comm_test_inter")(communicator, &isInter)) return 0;
	if (!isInter) return groupSize(communicator);
	return KNOWN(resolve, "PMPI_Comm_remote_size")(communicator, &n) ? 0 : n;
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

// Counting a call. A program can leave it by an exception too, or by longjmp, from a handler of errors or signals. self marks its place on
// the stack.
struct counted {
	const struct counted *self;
	struct record *record;
	// row is the function's in the record, once it has one.
	struct call **row;
	const char *name;
	uint64_t began, data;
	char kind;
};

static struct call *slot(struct record *r, const char *name, char kind) {
	uint32_t n = __atomic_fetch_add(&r->calls, 1, __ATOMIC_RELAXED);
	if (n >= maxCalls) {
		__atomic_store_n(&r->calls, maxCalls, __ATOMIC_RELAXED);
		return 0;
	}
	struct call *c = &r->call[n];
	name += sizeof "MPI_" - 1;
	for (unsigned i = 0; i < sizeof c->name - 1 && name[i]; i++) c->name[i] = name[i];
	c->kind = kind;
	__atomic_store_n(&c->complete, 1, __ATOMIC_RELEASE);
	return c;
}

// counting returns the record in which a call counts, whose frame ends at a place on the stack; 0 if it does not. The stack grows downwards:
// if a call is within another one, its frame ends below the other one, which still has its mark. If not, the program has left the other
// call by longjmp.
static struct record *counting(const void *end) {
	const struct counted *other = outermost;
	if (other && (word)end <= (word)other && other->self == other) return 0;
	return __atomic_load_n(&record, __ATOMIC_ACQUIRE);
}

SHARED static void enter(struct counted *c) {
	c->began = now();
	set(&c->record->entered, c->began);
	set(&c->record->last, c->began);
}

SHARED static void leave(struct counted *counted) {
	static struct call none;
	struct record *r = counted->record;
	outermost = 0;
	// An exception can end it before its data is known.
	if (!counted->began) return;
	uint64_t at = now(), took = at > counted->began ? at - counted->began : 0;
	struct call *c = __atomic_load_n(counted->row, __ATOMIC_RELAXED);
	if (!c) {
		// Two threads may take a slot each: the agent adds up those of the same name.
		c = slot(r, counted->name, counted->kind);
		if (!c) c = &none;
		__atomic_store_n(counted->row, c, __ATOMIC_RELAXED);
	}
	add(&c->count, 1);
	add(&c->nanoseconds, took);
	add(&r->communication, took);
	if (counted->data) {
		int class = 0;
		for (uint64_t limit = 64; class < sizeClasses - 1 && counted->data > limit; limit *= 16) class++;
		add(&r->sizes[class], 1);
		add(&c->bytes, counted->data);
	}
	set(&r->entered, 0);
	set(&r->last, at);
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
	if (__atomic_load_n(&record, __ATOMIC_RELAXED) || !folder || *folder != '/') return;
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
	calibrate();
	r->start = r->last = now();
	static const char magic[8] = {'M', 'P', 'I', 'P', 'R', 'O', 'F', '2'};
	for (int i = 0; i < 8; i++) r->magic[i] = magic[i];
	__atomic_store_n(&record, r, __ATOMIC_RELEASE);
}

#define PUBLIC __attribute__((visibility("default")))

// Functions to begin may call each other: the first one that returns begins.
PUBLIC int MPI_Init(word count, word arguments) {
	int result = KNOWN(resolveNext, "PMPI_Init")(count, arguments);
	if (!result) begin();
	return result;
}

PUBLIC int MPI_Init_thread(word count, word arguments, word required, word provided) {
	int result = KNOWN(resolveNext, "PMPI_Init_thread")(count, arguments, required, provided);
	if (!result) begin();
	return result;
}

SHARED static void finish(void) {
	struct record *r = __atomic_exchange_n(&record, 0, __ATOMIC_ACQ_REL);
	// A process that the rank has forked shares its page: Python's mpi4py calls MPI_Finalize at the end of such a process too.
	if (!r || r->process != (uint32_t)getpid()) return;
	set(&r->last, kernelTime());
	set(&r->end, r->last);
}

PUBLIC int MPI_Finalize(void) {
	finish();
	return KNOWN(resolveNext, "PMPI_Finalize")();
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

// COUNT counts the rest of a function. Functions of MPI that size needs are within the call.
#define COUNT(shown, kind, size) \
	struct counted counted __attribute__((cleanup(leave))) = {&counted, r, &row, shown, 0, 0, kind}; \
	outermost = &counted; \
	counted.data = (size); \
	enter(&counted)

#define DEFINE(name, shown, isLarge, kind, n, size) \
	PUBLIC int name(P##n) { \
		static struct call *row; \
		enum { large = isLarge }; \
		function *call = KNOWN(resolveNext, "P" #name); \
		struct record *r = counting(__builtin_dwarf_cfa()); \
		(void)large; \
		if (!r) return call(A##n); \
		COUNT(shown, kind, size); \
		return call(A##n); \
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
COLLECTIVE(MPI_Alltoall, MPI_Ialltoall, 7, 8, bytes(large, a5, a6) * (uint64_t)targets(a7))
COLLECTIVE(MPI_Alltoallv, MPI_Ialltoallv, 9, 10, isInPlace(a1) ? 0 : sum(large, a2, a4, targets(a9)))
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
	int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
	if (!is) is = find("ompi_mpi_comm_world") ? 1 : -1, __atomic_store_n(&known, is, __ATOMIC_RELAXED);
	return is > 0;
}

static int32_t value(word reference) { return *(int32_t *)reference; }

// inC returns a handle of C; only Open MPI has other handles in Fortran.
typedef word conversion(int);
SHARED static word inC(conversion **known, const char *name, word reference) {
	conversion *f = __atomic_load_n(known, __ATOMIC_RELAXED);
	if (!f) f = (conversion *)find(name), __atomic_store_n(known, f, __ATOMIC_RELAXED);
	return f ? f(value(reference)) : 0;
}

SHARED static uint64_t fortranBytes(word count, word type) {
	static conversion *f;
	return isOpenMPI() ? bytes(0, (word)value(count), inC(&f, "PMPI_Type_f2c", type)) : 0;
}

SHARED static uint64_t fortranGroup(word communicator, int isTargets) {
	static conversion *f;
	if (!isOpenMPI()) return 0;
	word c = inC(&f, "PMPI_Comm_f2c", communicator);
	return (uint64_t)(isTargets ? targets(c) : groupSize(c));
}

#define FORTRAN_BEGIN(name, n) \
	PUBLIC void name(P##n) { \
		KNOWN(resolveNext, "p" #name)(A##n); \
		if (!a##n || !value(a##n)) begin(); \
	}
#define FORTRAN_END(name) \
	PUBLIC void name(P1) { \
		finish(); \
		KNOWN(resolveNext, "p" #name)(A1); \
	}
FORTRAN_BEGIN(mpi_init_, 1)
FORTRAN_BEGIN(mpi_init_f08_, 1)
FORTRAN_BEGIN(mpi_init_thread_, 3)
FORTRAN_BEGIN(mpi_init_thread_f08_, 3)
FORTRAN_END(mpi_finalize_)
FORTRAN_END(mpi_finalize_f08_)

#define DEFINE_FORTRAN(name, shown, isCounted, kind, n, size) \
	PUBLIC void name(P##n) { \
		static struct call *row; \
		function *call = KNOWN(resolveNext, "p" #name); \
		struct record *r = counting(__builtin_dwarf_cfa()); \
		if (!r || !(isCounted)) { \
			call(A##n); \
			return; \
		} \
		COUNT(shown, kind, size); \
		call(A##n); \
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
FORTRAN(reduce_scatter_block, MPI_Reduce_scatter_block, 'c', 7, fortranBytes(a3, a4) * fortranGroup(a6, 0))
FORTRAN(ireduce_scatter_block, MPI_Ireduce_scatter_block, 'p', 8, fortranBytes(a3, a4) * fortranGroup(a6, 0))
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
FORTRAN(alltoall, MPI_Alltoall, 'c', 8, fortranBytes(a5, a6) * fortranGroup(a7, 1))
FORTRAN(ialltoall, MPI_Ialltoall, 'p', 9, fortranBytes(a5, a6) * fortranGroup(a7, 1))
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
