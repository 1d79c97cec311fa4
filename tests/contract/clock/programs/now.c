/* Every way in which a C library gives the time. */
#include "tell.h"

int main(void) {
    struct timespec t;
    struct timeval v;
    printf("now %lld\n", (long long)time(NULL));
    gettimeofday(&v, NULL);
    printf("now %lld.%06ld\n", (long long)v.tv_sec, (long)v.tv_usec);
    clock_gettime(CLOCK_REALTIME, &t);
    tell("now", &t);
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    tell("now", &t);
    clock_gettime(CLOCK_TAI, &t);
    tell("now", &t);
    timespec_get(&t, TIME_UTC);
    tell("now", &t);
    return 0;
}
