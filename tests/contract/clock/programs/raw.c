/* The same from the kernel itself, past the C library and the vDSO. */
#define _GNU_SOURCE
#include "tell.h"
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    struct timespec t;
    struct timeval v;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    tell("now", &t);
    syscall(SYS_clock_gettime, CLOCK_REALTIME_COARSE, &t);
    tell("now", &t);
    syscall(SYS_gettimeofday, &v, NULL);
    printf("now %lld.%06ld\n", (long long)v.tv_sec, (long)v.tv_usec);
#ifdef SYS_time
    printf("now %ld\n", syscall(SYS_time, NULL));
#endif
    return 0;
}
