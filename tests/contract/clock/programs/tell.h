/* What the programs here say: a line for each time that they have read, and for each wait. */
#pragma once
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static inline void tell(const char *what, const struct timespec *t) {
    printf("%s %lld.%09ld\n", what, (long long)t->tv_sec, t->tv_nsec);
}

static inline double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline struct timespec in(double seconds, clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    long long at = t.tv_nsec + (long long)(seconds * 1e9);
    t.tv_sec += at / 1000000000;
    t.tv_nsec = at % 1000000000;
    return t;
}
