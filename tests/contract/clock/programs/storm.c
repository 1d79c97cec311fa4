/* A signal each millisecond, whose handler reads the clock too, while the clock is read and waits
 * with a deadline go on: no call fails, and each wait that is begun again ends at its time. */
#define _GNU_SOURCE
#include "tell.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int failed, signals;

static void look(int number) {
    struct timespec t;
    (void)number;
    signals++;
    if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &t)) failed = errno;
}

int main(void) {
    struct sigaction act = {.sa_handler = look, .sa_flags = SA_RESTART};
    struct itimerval each = {{0, 1000}, {0, 1000}};
    struct timespec t;
    struct timeval v;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    for (int i = 0; i < 3000; i++) {
        if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &t)) failed = errno;
        if (syscall(SYS_gettimeofday, &v, NULL)) failed = errno;
        if (clock_gettime(CLOCK_REALTIME, &t) || t.tv_sec - v.tv_sec > 60) failed = errno;
    }
    tell("now", &t);
    for (int i = 0; i < 3; i++) {
        double began = monotonic();
        struct timespec until = in(0.2, CLOCK_REALTIME);
        int e;
        while ((e = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL)) == EINTR) {}
        if (e) failed = e;
        printf("waited %.3f 0.200\n", monotonic() - began);
    }
    memset(&each, 0, sizeof each);
    setitimer(ITIMER_REAL, &each, NULL);
    if (failed || signals < 20) printf("%d signals: %s\n", signals, strerror(failed));
    return 0;
}
