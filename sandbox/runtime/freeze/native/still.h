/* Freezes the wall clock for every descendant of one thread.
 *
 * axis.c      which instant it is, for a clock and for a file's time
 * settings.c  the options, from a command line or from one string
 * vdso.c      the time functions the kernel maps into every process, rewritten (x86-64)
 * filter.c    which system calls are refused, and which the supervisor is asked about
 * target.c    reading and writing another process, and being as little as it is
 * files.c     stat and its family;  swift.c  the same inside a program that asks often
 * waits.c     absolute deadlines
 * chance.c    seeded randomness;    guard.c  signals to the guarded process
 * answer.c    one notification, answered;  serve.c  the threads that do so
 * door.c      how a program started from outside comes under the same supervisor
 * begin.c     how a freeze starts: in a child (still), or in the calling thread (libstill)
 *
 * The supervisor allocates nothing and uses no stdio: as a library it shares its process with a
 * program that may hold any lock while it waits for us.
 */
#ifndef STILL_H
#define STILL_H
#include "kernel.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NANO 1000000000LL
#define DOOR_NAME "stillroom"
#define MAX_LISTENERS 64
#define CANNOT_START 125 /* the exit status of what never started, as env(1) and docker have it */

enum mode { TICKING, FIXED, STEP };

struct settings { /* also what a joining program is told: numbers only */
    uint32_t version;
    int32_t mode;
    int64_t at, mono0, real0, since, step;
    uint64_t seed;
    int32_t seeded, guard, aslr_off;
    int32_t guarded; /* the process nobody may touch, 0 for none */
    int32_t dumpable;
    int32_t blind; /* without the right to look into processes that do not want it */
    uint64_t cookie; /* lets a stat pass that swift.c makes */
};
#define SETTINGS_VERSION 0x5711u + (uint32_t)sizeof(struct settings)
extern struct settings settings;

/* settings.c */
int setting(const char *key, const char *value); /* 0, or -EINVAL */
int settings_complete(void);                     /* fills in what was not said; 0, or -EINVAL */

/* axis.c */
int64_t clock_real(void);
int64_t clock_mono(void);
int64_t frozen_now(void);  /* a read: in step mode the next one is later */
int64_t frozen_peek(void); /* not a read */
/* `kernels`: nobody can have meant it, for only the kernel sets this one */
void freeze_file_time(int64_t *sec, int64_t *nsec, int64_t real_now, int kernels);
int thaw_deadline(int64_t *sec, int64_t *nsec); /* 1 when it was changed */

/* vdso.c */
#define VDSO_MOST 16384
struct vdso {
    uint8_t image[VDSO_MOST]; /* as every process is to have it */
    uint64_t detour;          /* the kernel's own clock_gettime, in there; 0 when it was not kept */
    size_t from, to;          /* what has to be written of it */
    size_t size;              /* 0: this kernel maps none, so nothing has to be hidden */
};
int vdso_prepare(struct vdso *vdso); /* 0, or -errno */
extern struct vdso vdso;

/* filter.c */
#define FILTER_MOST 400
unsigned filter_build(struct sock_filter *filter);
int filter_install(void); /* the listener, or -errno */

/* target.c */
struct creds {
    int32_t tid;
    uint32_t epoch;
    int64_t until;
    uint32_t uid, gid;
    int32_t overrides; /* holds CAP_DAC_OVERRIDE */
    int32_t group_count;
    int32_t same_root; /* -1: nobody has looked */
    uint32_t groups[32];
};
int peek(pid_t tid, uint64_t address, void *to, size_t size); /* 0 or -1 */
int poke(pid_t tid, uint64_t address, const void *from, size_t size);
int peek_string(pid_t tid, uint64_t address, char *to, size_t size);
int read_proc(pid_t tid, const char *name, void *to, size_t size); /* bytes, or -1 */
int open_proc(pid_t tid, const char *name, int flags);
long proc_number(const char *text, const char *label, int base, long fallback);
pid_t group_of(pid_t tid); /* the thread group */
void creds_remember_own(void);
int proc_is_ours(void);
void creds_changed(void);  /* somebody's may: what is known of them is forgotten */
int creds_mixed(void);
int same_root(pid_t tid);
int creds_assume(pid_t tid); /* 1: leave afterwards, 0: nothing changed, -1: gone */
void creds_leave(void);

/* answer.c and what it asks */
enum { CONTINUE = 1 };
struct answer {
    int64_t value;
    int error; /* negative errno */
    int goes_on;
};
void answer_one(int listener, const struct seccomp_notif *asked, struct answer *answer);
int still_asked(int listener, uint64_t id);
void answer_stat(int listener, const struct seccomp_notif *asked, struct answer *answer);
void roots_changed(void);
void swift_consider(const struct seccomp_notif *asked);
void swift_forget(pid_t tid, uint64_t vdso_at); /* another program now */
void answer_wait(const struct seccomp_notif *asked);
void answer_random(const struct seccomp_notif *asked, struct answer *answer);
void random_begin(pid_t tid, uint8_t bytes[16]);
void answer_signal(const struct seccomp_notif *asked, struct answer *answer);

/* serve.c */
#define SPARE 2
int serve(int listener);    /* a thread answers it from now on; 0 or -errno */
int serve_ready(int spare); /* has so many threads for listeners to come: unfrozen, as its caller */
int serve_room(void);
int start_thread(void *(*body)(void *), void *argument); /* 0 or -errno */
void shared_lock(void);
void shared_unlock(void);
void give_up(const char *why) __attribute__((noreturn)); /* a crash never thaws */

/* door.c */
int door_open(void);                /* binds and starts its thread; 0 or -errno */
int door_connect(struct settings *); /* the socket, or -errno; fills in the settings */
int door_hand_over(int door, int listener);
int send_listener(int socket, int listener);
int receive_listener(int socket); /* the descriptor, or -1 */

/* begin.c */
int become_frozen(int *listener); /* this thread, and what it starts from now on */
void learn_rights(void);
void drop_capabilities(void);
void be_not_dumpable(void);

/* text.c */
void say(const char *a, const char *b, long error);
char *put_text(char *at, const char *text);
char *put_number(char *at, long number);

/* probe.c */
int probe(int count, char **words);
#endif
