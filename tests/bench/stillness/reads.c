/* reads N: nanoseconds that one look at the wall clock takes, of N. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int count, char **words) {
    struct timespec t;
    long times = count > 1 ? atol(words[1]) : 10000000;
    double began = monotonic();
    for (long i = 0; i < times; i++) clock_gettime(CLOCK_REALTIME, &t);
    printf("%.3f\n", (monotonic() - began) / (double)times);
    return 0;
}
