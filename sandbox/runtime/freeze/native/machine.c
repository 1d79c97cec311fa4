/* A machine that seems to have been started a while ago: a time namespace, where the kernel has any.
 * In C because a process that is forked for every box pays for each page that Python touches. */
#define _GNU_SOURCE
#include "still.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static int64_t shift; /* of monotonic time, against the machine's */

EXPORT int64_t still_shift(void) { return shift; }

static char *put_offset(char *at, const char *clock, int64_t offset) {
    int64_t seconds = offset / NANO, rest = offset % NANO;
    if (rest < 0) rest += NANO, seconds--;
    at = put_text(put_number(put_text(at, clock), (long)seconds), " ");
    return put_text(put_number(at, (long)rest), "\n");
}

/* For the calling thread, which has to be its process's only one, and what it starts. 0, or -errno:
 * then nothing has changed, unless what failed was to go where all was ready. */
EXPORT int still_uptime(int64_t up) {
    struct timespec boot;
    if (unshare(CLONE_NEWTIME)) return -errno;
    /* A process that hides its memory does not own what /proc shows of it. The caller hides it again. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &boot)) return -errno;
    int64_t mono_shift = up - clock_mono();
    int64_t boot_shift = up - ((int64_t)boot.tv_sec * NANO + boot.tv_nsec);
    char text[160], *end = put_offset(text, "monotonic ", mono_shift);
    end = put_offset(end, "boottime ", boot_shift);
    int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    int error = offsets < 0 || write(offsets, text, (size_t)(end - text)) < 0 ? -errno : 0;
    if (offsets >= 0) close(offsets);
    if (error) return error;
    int there = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWTIME)) error = -errno;
    else shift = mono_shift;
    if (there >= 0) close(there);
    return error;
}
