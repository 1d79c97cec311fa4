/* The options, the same by name for the program (--at 5) and for the library (at=5). */
#include "still.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct settings settings = {.version = SETTINGS_VERSION, .mode = TICKING, .step = 1000, .mono0 = -1};
static int at_given;

static int whole(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno || end == text || *end ? -EINVAL : 0;
}

int setting(const char *key, const char *value) {
    int64_t n = 0;
    if (!strcmp(key, "mode")) {
        if (!strcmp(value, "ticking")) settings.mode = TICKING;
        else if (!strcmp(value, "fixed")) settings.mode = FIXED;
        else if (!strcmp(value, "step")) settings.mode = STEP;
        else return -EINVAL;
        return 0;
    }
    if (!strcmp(key, "seed")) {
        char *end;
        errno = 0;
        settings.seed = strtoull(value, &end, 10);
        settings.seeded = 1;
        return errno || end == value || *end ? -EINVAL : 0;
    }
    if (whole(value, &n)) return -EINVAL;
    if (!strcmp(key, "at")) settings.at = n, at_given = 1;
    else if (!strcmp(key, "step")) settings.step = n;
    else if (!strcmp(key, "mono0")) settings.mono0 = n;
    else if (!strcmp(key, "real0")) settings.real0 = n;
    else if (!strcmp(key, "since")) settings.since = n;
    else if (!strcmp(key, "aslr")) settings.aslr_off = !n;
    else if (!strcmp(key, "dumpable")) settings.dumpable = !!n;
    else if (!strcmp(key, "guarded")) settings.guarded = (int32_t)n;
    else return -EINVAL;
    return 0;
}

int settings_complete(void) {
    int64_t mono = clock_mono(), real = clock_real();
    if (!at_given || settings.step < 0) return -EINVAL;
    if (syscall(SYS_getrandom, &settings.cookie, sizeof settings.cookie, 0) < 0) return -errno;
    if (settings.mono0 < 0) settings.mono0 = mono;
    /* When only one of the two was said, the other follows: both name the same moment. */
    if (!settings.real0) settings.real0 = real - (mono - settings.mono0);
    /* The kernel stamps files with its last tick's time, up to some milliseconds ago. */
    if (!settings.since) settings.since = settings.real0 - 50000000;
    return 0;
}
