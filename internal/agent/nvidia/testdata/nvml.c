// A library with the functions of NVML that are used, and devices that the environment of the compiler names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { success = 0, notSupported = 3, noPermission = 4, lost = 15, devices = 4 };
static int first;
static int numbers[devices] = {0, 1, 2, 3};
struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct sample { unsigned long long time; union { unsigned number; unsigned long long large; double real; } value; };

// The parts of the last device.
static int part;

static void hang(void) {
	for (;;) pause();
}

int nvmlInit_v2(void) {
	puts("WARNING: a library that prints to standard output");
	fflush(stdout);
#ifdef NO_DRIVER
	return 9;
#endif
#ifdef HANGS_AT_ONCE
	hang();
#endif
	return success;
}
const char *nvmlErrorString(int result) { return result == 9 ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned *count) {
#ifdef HANGS
	if (first++) hang();
#endif
#ifdef DIES
	if (first++) abort();
#endif
	(void)hang, (void)first;
	*count = devices;
	return success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
	*device = &numbers[index];
	return success;
}
static int number(void *device) { return device == &part ? devices : (int)((int *)device - numbers); }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size) {
	snprintf(uuid, size, "%s-%d", device == &part ? "MIG" : "GPU", number(device));
	return success;
}
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor) {
	*minor = (unsigned)number(device);
	return success;
}
// GPU 0 keeps samples, GPU 1 does not. GPU 2 is lost, and GPU 3 is divided.
int nvmlDeviceGetSamples(void *device, int kind, unsigned long long since, int *type, unsigned *count, struct sample *samples) {
	if (number(device) || kind != 1) return notSupported;
	if (!samples) return *count = 100, success;
	*type = 1;
	// The first sample was read before, and the last one is none.
	samples[0].time = since, samples[0].value.number = 0;
	for (unsigned i = 1; i < 100; i++) samples[i].time = since + i, samples[i].value.number = 40 + i % 2 * 20;
	samples[99].value.number = 4000;
	return success;
}
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) {
	if (number(device) >= 2) return number(device) == 2 ? lost : notSupported;
	rates->gpu = 80, rates->memory = 25;
	return success;
}
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
	if (number(device) == 2) return lost;
	memory->total = device == &part ? 10ull << 30 : 80ull << 30, memory->used = 4ull << 30, memory->free = memory->total - memory->used;
	return success;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *power) { return number(device) ? notSupported : (*power = 250500, success); }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *temperature) { return number(device) > 1 || sensor ? notSupported : (*temperature = 60 + number(device), success); }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { return number(device) > 1 ? notSupported : (*reasons = number(device) ? 0x44 : 1, success); }
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *errors) { return number(device) || type != 1 || counter ? notSupported : (*errors = 2, success); }
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) { return number(device) < 1 ? notSupported : (*current = *pending = number(device) == 3, success); }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { return (void)device, *count = 7, success; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **handle) { return (void)device, index == 1 ? (*handle = &part, success) : 6; }
