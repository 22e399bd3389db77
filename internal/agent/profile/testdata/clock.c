/* A clock of which one call takes long before it reads the time, as if the process lost its CPU there: that of the number in the variable SLOW, from 0. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
	static int calls;
	const char *slow = getenv("SLOW");
	if (slow && calls++ == atoi(slow)) usleep(40000);
	return syscall(SYS_clock_gettime, clock, time);
}
