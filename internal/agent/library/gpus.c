// A library that reads the GPUs of NVIDIA which a pod has, with NVIDIA's management library, NVML
// (https://docs.nvidia.com/deploy/nvml-api). The agent preloads it into the image's shell, and it runs instead of it: for each byte that it
// reads, it prints what the GPUs do. It ends at the end of its input. Without the variable MPI_AGENT_GPUS, which only the agent sets for it,
// it does nothing. Its value is how many seconds NVML may take.
//
// It needs no headers and no version of a C library, and is not linked with NVML: the driver's version of it is mounted into the pod.
typedef void *device;

enum { lazy = 1, standardInput = 0, standardOutput = 1, standardError = 2, maxDevices = 64, maxSamples = 256, lineSize = 512 };

// The functions of the C library that are used. Those of Linux' two, glibc and musl, agree in them. Those of the dynamic linker may be in
// another library, which the agent preloads, too.
extern unsigned alarm(unsigned seconds);
extern int atoi(const char *text);
extern char *dlerror(void) __attribute__((weak));
extern void *dlopen(const char *path, int flags) __attribute__((weak));
extern void *dlsym(void *library, const char *name) __attribute__((weak));
extern int dup(int file);
extern int dup2(int file, int to);
extern void _exit(int code) __attribute__((noreturn));
extern char *getenv(const char *name);
extern long read(int file, void *data, unsigned long size);
extern int snprintf(char *to, unsigned long size, const char *format, ...);
extern int unsetenv(const char *name);
extern long write(int file, const void *data, unsigned long size);

// output is where the agent reads. Libraries may print to standard output.
static int output;

#define PRINT(...) do { \
		char line[lineSize]; \
		int printed = snprintf(line, sizeof line, __VA_ARGS__); \
		if (printed >= (int)sizeof line) line[(printed = sizeof line) - 1] = '\n'; \
		if (write(output, line, (unsigned long)printed) != printed) _exit(1); \
	} while (0)

// What NVML returns, and its numbers of kinds: of a sensor, of samples and their values, and of errors of memory since the driver was loaded.
enum { success = 0, lost = 15, sensorGPU = 0, samplesOfGPU = 1, valueUnsigned = 1, uncorrected = 1, volatileCounter = 0 };
struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct sample { unsigned long long time; union { unsigned number; unsigned long long large; double real; } value; };

static struct {
	int (*Init_v2)(void), (*DeviceGetCount_v2)(unsigned *), (*DeviceGetHandleByIndex_v2)(unsigned, device *);
	int (*DeviceGetUUID)(device, char *, unsigned), (*DeviceGetMinorNumber)(device, unsigned *);
	int (*DeviceGetUtilizationRates)(device, struct utilization *), (*DeviceGetMemoryInfo)(device, struct memory *);
	int (*DeviceGetSamples)(device, int, unsigned long long, int *, unsigned *, struct sample *);
	int (*DeviceGetPowerUsage)(device, unsigned *), (*DeviceGetTemperature)(device, int, unsigned *);
	int (*DeviceGetCurrentClocksThrottleReasons)(device, unsigned long long *);
	int (*DeviceGetTotalEccErrors)(device, int, int, unsigned long long *);
	int (*DeviceGetMigMode)(device, unsigned *, unsigned *), (*DeviceGetMaxMigDeviceCount)(device, unsigned *);
	int (*DeviceGetMigDeviceHandleByIndex)(device, unsigned, device *);
	const char *(*ErrorString)(int);
} nvml;

// load finds NVML, where programs do or where some providers of clusters mount it, and its functions.
static int load(void) {
	if (!dlopen || !dlsym || !dlerror) {
		PRINT("error the shell of the image cannot load libraries\n");
		return 0;
	}
	void *library = dlopen("libnvidia-ml.so.1", lazy);
	if (!library) {
		char reason[lineSize - 16];
		snprintf(reason, sizeof reason, "%s", dlerror());
		if (!(library = dlopen("/usr/local/nvidia/lib64/libnvidia-ml.so.1", lazy))) {
			PRINT("error %s\n", reason);
			return 0;
		}
	}
#define FIND(name) (nvml.name = (__typeof__(nvml.name))dlsym(library, "nvml" #name))
	// Versions of NVML have some functions and not others.
	FIND(DeviceGetUUID), FIND(DeviceGetMinorNumber), FIND(DeviceGetUtilizationRates), FIND(DeviceGetMemoryInfo), FIND(DeviceGetSamples);
	FIND(DeviceGetPowerUsage), FIND(DeviceGetTemperature), FIND(DeviceGetCurrentClocksThrottleReasons), FIND(DeviceGetTotalEccErrors);
	FIND(DeviceGetMigMode), FIND(DeviceGetMaxMigDeviceCount), FIND(DeviceGetMigDeviceHandleByIndex), FIND(ErrorString);
	if (FIND(Init_v2) && FIND(DeviceGetCount_v2) && FIND(DeviceGetHandleByIndex_v2)) return 1;
	PRINT("error this version of NVML lacks functions\n");
	return 0;
}

static const char *describe(int result) { return nvml.ErrorString ? nvml.ErrorString(result) : "an error of NVML"; }

// isLost is set if NVML cannot reach the device any more.
static int isLost;

static int check(int result) {
	if (result == lost) isLost = 1;
	return result == success;
}

#define CALL(name, ...) (nvml.name && check(nvml.name(__VA_ARGS__)))

// busy returns the share of time in thousandths in which a GPU was busy since it was asked last, or, if the driver keeps no samples, in the
// last moment; -1 if that is unknown. since is the time of the last sample.
static long long busy(device gpu, unsigned long long *since) {
	static struct sample samples[maxSamples];
	struct utilization now;
	unsigned count = 0;
	int kind = -1;
	unsigned long long sum = 0, of = 0, after = *since;
	if (CALL(DeviceGetSamples, gpu, samplesOfGPU, after, &kind, &count, 0) && count > 0) {
		if (count > maxSamples) count = maxSamples;
		if (!CALL(DeviceGetSamples, gpu, samplesOfGPU, after, &kind, &count, samples) || kind != valueUnsigned || count > maxSamples) count = 0;
		for (unsigned i = 0; i < count; i++) {
			if (samples[i].time <= after || samples[i].value.number > 100) continue;
			if (samples[i].time > *since) *since = samples[i].time;
			sum += samples[i].value.number, of++;
		}
		if (of > 0) return (long long)(sum * 10 / of);
	}
	return CALL(DeviceGetUtilizationRates, gpu, &now) ? 10LL * now.gpu : -1;
}

// print prints a line of a device, or of a part of one, which shares all but its memory with others. Figures that are unknown are -1.
static void print(device gpu, int minor, int isPart, unsigned long long *since) {
	char uuid[96] = "-";
	struct utilization rates;
	struct memory memory;
	unsigned power, temperature;
	unsigned long long reasons, errors;
	if (!CALL(DeviceGetUUID, gpu, uuid, sizeof uuid)) uuid[0] = '-', uuid[1] = 0;
	int hasMemory = CALL(DeviceGetMemoryInfo, gpu, &memory);
	long long share = isPart ? -1 : busy(gpu, since);
	int hasRates = !isPart && CALL(DeviceGetUtilizationRates, gpu, &rates);
	int hasPower = !isPart && CALL(DeviceGetPowerUsage, gpu, &power);
	int hasTemperature = !isPart && CALL(DeviceGetTemperature, gpu, sensorGPU, &temperature);
	int hasReasons = !isPart && CALL(DeviceGetCurrentClocksThrottleReasons, gpu, &reasons);
	int hasErrors = !isPart && CALL(DeviceGetTotalEccErrors, gpu, uncorrected, volatileCounter, &errors);
	PRINT("gpu %d %s %lld %lld %lld %lld %lld %lld %lld %lld %d\n", minor, uuid, share, hasRates ? 10LL * rates.memory : -1,
	      hasMemory ? (long long)(memory.used >> 20) : -1, hasMemory ? (long long)(memory.total >> 20) : -1, hasPower ? (long long)power : -1,
	      hasTemperature ? (long long)temperature : -1, hasReasons ? (long long)reasons : -1, hasErrors ? (long long)errors : -1, isLost);
}

// printAll prints a line for each device.
static void printAll(void) {
	static unsigned long long since[maxDevices];
	unsigned count = 0;
	int result = nvml.DeviceGetCount_v2(&count);
	if (result != success) {
		PRINT("error %s\n", describe(result));
		_exit(1);
	}
	for (unsigned i = 0; i < count && i < maxDevices; i++) {
		device gpu = 0, part = 0;
		unsigned minor = i, isDivided = 0, pending = 0, parts = 0;
		isLost = 0;
		if (!check(nvml.DeviceGetHandleByIndex_v2(i, &gpu))) {
			if (isLost) PRINT("gpu %d - -1 -1 -1 -1 -1 -1 -1 -1 1\n", -1);
			continue;
		}
		if (!CALL(DeviceGetMinorNumber, gpu, &minor)) minor = i;
		if (!CALL(DeviceGetMigMode, gpu, &isDivided, &pending) || !isDivided || !CALL(DeviceGetMaxMigDeviceCount, gpu, &parts)) {
			print(gpu, (int)minor, 0, &since[i]);
			continue;
		}
		for (unsigned n = 0; n < parts && n < maxDevices; n++)
			if (CALL(DeviceGetMigDeviceHandleByIndex, gpu, n, &part)) print(part, (int)minor, 1, 0);
	}
	PRINT("end\n");
}

__attribute__((constructor)) static void run(void) {
	char request;
	int result;
	const char *limit = getenv("MPI_AGENT_GPUS");
	if (!limit) return;
	unsigned patience = (unsigned)atoi(limit);
	unsetenv("LD_PRELOAD");
	output = dup(standardOutput);
	dup2(standardError, standardOutput);
	// A driver that does not answer does not keep the process.
	alarm(patience);
	if (!load()) _exit(1);
	if ((result = nvml.Init_v2()) != success) {
		PRINT("error %s\n", describe(result));
		_exit(1);
	}
	alarm(0);
	while (read(standardInput, &request, 1) == 1) {
		alarm(patience);
		printAll();
		alarm(0);
	}
	_exit(0);
}
