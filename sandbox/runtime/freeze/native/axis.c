/* The frozen time axis: P + (monotonic - mono0), or P, or P and a step more at each read. */
#include "still.h"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t steps;

static int64_t raw(int clock) {
    /* Never the vDSO: in a nested freeze ours is rewritten. */
    struct timespec t = {0, 0};
    syscall(SYS_clock_gettime, clock, &t);
    return (int64_t)t.tv_sec * NANO + t.tv_nsec;
}

int64_t clock_real(void) { return raw(CLOCK_REALTIME); }
int64_t clock_mono(void) { return raw(CLOCK_MONOTONIC); }

int64_t frozen_now(void) {
    if (settings.mode == FIXED) return settings.at;
    if (settings.mode == STEP)
        return settings.at + settings.step * __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
    return settings.at + clock_mono() - settings.mono0;
}

int64_t frozen_peek(void) {
    if (settings.mode != STEP) return frozen_now();
    return settings.at + settings.step * __atomic_load_n(&steps, __ATOMIC_RELAXED);
}

static void split(__int128 t, int64_t *sec, int64_t *nsec) {
    *sec = (int64_t)(t / NANO);
    *nsec = (int64_t)(t % NANO);
    if (*nsec < 0) *nsec += NANO, --*sec;
}

void freeze_file_time(int64_t *sec, int64_t *nsec, int64_t real_now, int kernels) {
    __int128 t = (__int128)*sec * NANO + *nsec;
    /* Others were set by somebody who meant them: utimes, an archive, the image. */
    if (t > (__int128)real_now + NANO) return;
    /* An image unpacked in what is the box's future: as old as the box. */
    if (t < settings.since && kernels && t > settings.at) t = settings.since;
    if (t < settings.since) return;
    __int128 age = t - settings.real0;
    if (settings.mode != TICKING)
        /* In order, and never in the future of a clock that does not move. */
        split((__int128)settings.at - 4 * NANO + (age >> 16), sec, nsec);
    else
        split((__int128)settings.at + (age > 0 ? age : 0), sec, nsec);
}

static __int128 distance(__int128 a, __int128 b) { return a > b ? a - b : b - a; }

int thaw_deadline(int64_t *sec, int64_t *nsec) {
    if (*sec < 0 || *nsec < 0 || *nsec >= NANO) return 0; /* the kernel refuses it */
    __int128 t = (__int128)*sec * NANO + *nsec;
    int64_t frozen = frozen_peek(), real = clock_real();
    /* A call that is restarted, or a loop that passes the same struct again, shows us our own
     * result: it is nearer to the real now, and is left alone. */
    if (distance(t, real) <= distance(t, frozen)) return 0;
    split(t - frozen + real, sec, nsec);
    return 1;
}
