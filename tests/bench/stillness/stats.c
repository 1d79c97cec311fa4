/* stats N: nanoseconds that stat takes, of a file that was made here, of N. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int count, char **words) {
    struct stat found;
    char name[] = "/tmp/statsXXXXXX";
    int fd = mkstemp(name), failed = 0;
    long times = count > 1 ? atol(words[1]) : 20000;
    double began = monotonic();
    for (long i = 0; i < times; i++) failed |= stat(name, &found);
    printf("%.1f\n", (monotonic() - began) / (double)times);
    close(fd);
    unlink(name);
    return failed;
}
