/* libstill: the supervisor as threads of the caller's process, loaded with ctypes by process 1 of a
 * box. Only the calling thread and what it starts from then on is frozen. When the supervisor cannot
 * go on the process ends, and with process 1 the box. */
#include "still.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int read_options(const char *options) {
    char word[128];
    while (*options) {
        size_t size = strcspn(options, " ");
        if (size >= sizeof word) return -EINVAL;
        memcpy(word, options, size);
        word[size] = 0;
        options += size + strspn(options + size, " ");
        char *value = strchr(word, '=');
        if (!size) continue;
        if (!value) return -EINVAL;
        *value++ = 0;
        if (setting(word, value)) return -EINVAL;
    }
    return settings_complete();
}

EXPORT int still_begin(const char *options) {
    static int begun;
    if (begun++) return -EALREADY;
    int listener = -1, error = read_options(options);
    if (error || (error = vdso_prepare(&vdso))) return error;
    creds_remember_own();
    creds_changed(); /* a box's process 1 lowers what it starts: each one is looked at */
    if ((error = serve_later())) return error;
    if (!(error = door_open())) error = become_frozen(&listener);
    serve_now(error ? -1 : listener);
    if (error) return error;
    be_not_dumpable();
    return 0;
}

/* For a process that has come into a box from outside, and is about to become a program there. */
EXPORT int still_join(void) {
    struct settings told;
    int listener = -1, door = door_connect(&told);
    if (door < 0) return door;
    settings = told;
    int error = become_frozen(&listener);
    if (!error) error = door_hand_over(door, listener);
    if (listener >= 0) close(listener);
    close(door);
    return error;
}

EXPORT int64_t still_mono0(void) { return settings.mono0; }
EXPORT int64_t still_real0(void) { return settings.real0; }
