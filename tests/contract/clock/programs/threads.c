/* Many threads read the clock, each in both ways: what they see never goes back. */
#define _GNU_SOURCE
#include "tell.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 8
#define READS 400

static struct timespec last[THREADS];

static void *look(void *which) {
    struct timespec before = {0, 0}, t;
    for (int i = 0; i < READS; i++) {
        if (i % 8) clock_gettime(CLOCK_REALTIME, &t);
        else syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
        if (t.tv_sec < before.tv_sec || (t.tv_sec == before.tv_sec && t.tv_nsec < before.tv_nsec))
            tell("back to", &t);
        before = t;
    }
    *(struct timespec *)which = before;
    return NULL;
}

int main(void) {
    pthread_t made[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&made[i], NULL, look, &last[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(made[i], NULL), tell("now", &last[i]);
    return 0;
}
