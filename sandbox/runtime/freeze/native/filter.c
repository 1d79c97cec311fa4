/* Which system calls are refused, and which the supervisor is asked about. Whatever is always
 * allowed costs nothing: the kernel remembers that by number and does not run the filter. */
#include "still.h"
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
static struct sock_filter *code;
static unsigned at, opened;

#define LOW(n) (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n))
#define HIGH(n) (LOW(n) + 4)

static void emit(uint16_t op, uint32_t k, uint8_t yes, uint8_t no) {
    code[at++] = (struct sock_filter){op, yes, no, k};
}
static void load(uint32_t offset) { emit(BPF_LOAD, offset, 0, 0); }
static void give(uint32_t verdict) { emit(BPF_GIVE, verdict, 0, 0); }
static void allow(void) { give(SECCOMP_RET_ALLOW); }
static void ask(void) { give(SECCOMP_RET_USER_NOTIF); }

/* What stands between when() and done() is for one call; it must end in a verdict, so that behind
 * it the accumulator still holds the call's number. */
static void when(uint32_t nr) {
    opened = at;
    emit(BPF_IF_EQUAL, nr, 0, 0);
}
static void done(void) { code[opened].jf = (uint8_t)(at - opened - 1); }

static void refuse(uint32_t nr, uint32_t error) {
    when(nr);
    give(SECCOMP_RET_ERRNO | error);
    done();
}
static void ask_about(uint32_t nr) {
    when(nr);
    ask();
    done();
}
/* Asks when the argument, a pointer or a number, is not zero. */
static void ask_unless_null(unsigned argument) {
    load(LOW(argument));
    emit(BPF_IF_EQUAL, 0, 0, 2);
    load(HIGH(argument));
    emit(BPF_IF_EQUAL, 0, 1, 0);
    ask();
    allow();
}
static void ask_when_equal(const uint32_t *values, unsigned count) {
    for (unsigned i = 0; i < count; i++) emit(BPF_IF_EQUAL, values[i], (uint8_t)(count - i), 0);
    allow();
    ask();
}

static const uint32_t wall_clocks[] = {0, 5, 8, 11};

static void clocks(void) {
    when(SYS_clock_gettime);
    load(LOW(0));
    ask_when_equal(wall_clocks, 4);
    done();
    ask_about(SYS_gettimeofday);
    ask_about(SYS_time);
    /* Once in every exec, by every libc and by Go, before the first look at a clock. */
    when(SYS_arch_prctl);
    load(LOW(0));
    emit(BPF_IF_EQUAL, ARCH_SET_FS, 1, 0);
    allow();
    ask();
    done();
    refuse(SYS_clock_settime, EPERM);
    refuse(SYS_settimeofday, EPERM);
    refuse(SYS_adjtimex, EPERM);
    refuse(SYS_clock_adjtime, EPERM);
}

static void waits(void) {
    when(SYS_futex);
    load(LOW(1));
    emit(BPF_IF_ANY_BIT, FUTEX_CLOCK_REALTIME, 3, 0);
    emit(BPF_MASK, FUTEX_COMMANDS, 0, 0);
    emit(BPF_IF_EQUAL, FUTEX_LOCK_PI, 7, 0); /* realtime by definition */
    allow();
    emit(BPF_MASK, FUTEX_COMMANDS, 0, 0);
    emit(BPF_IF_EQUAL, FUTEX_WAIT_BITSET, 4, 0);
    emit(BPF_IF_EQUAL, FUTEX_WAIT_REQUEUE_PI, 3, 0);
    emit(BPF_IF_EQUAL, FUTEX_LOCK_PI2, 2, 0);
    emit(BPF_IF_EQUAL, FUTEX_LOCK_PI, 1, 0);
    allow(); /* the others' deadlines are relative */
    ask_unless_null(3);
    done();
    when(SYS_clock_nanosleep);
    load(LOW(1));
    emit(BPF_IF_ANY_BIT, 1, 1, 0);
    allow();
    load(LOW(0));
    ask_when_equal(wall_clocks, 4);
    done();
    static const uint32_t timers[] = {SYS_timerfd_settime, SYS_timer_settime};
    for (unsigned i = 0; i < 2; i++) {
        when(timers[i]);
        load(LOW(1));
        emit(BPF_IF_ANY_BIT, 1, 1, 0); /* TIMER_ABSTIME, TFD_TIMER_ABSTIME */
        allow();
        ask();
        done();
    }
    static const uint32_t queues[] = {SYS_mq_timedsend, SYS_mq_timedreceive};
    for (unsigned i = 0; i < 2; i++) {
        when(queues[i]);
        ask_unless_null(4);
        done();
    }
    when(NR_futex_waitv);
    load(LOW(4));
    emit(BPF_IF_EQUAL, 0, 1, 0);
    allow();
    ask_unless_null(3);
    done();
    when(NR_futex_wait);
    load(LOW(5));
    emit(BPF_IF_EQUAL, 0, 1, 0);
    allow();
    ask_unless_null(4);
    done();
}

static void files(void) {
    static const uint32_t stats[] = {SYS_newfstatat, SYS_statx, SYS_fstat, SYS_stat, SYS_lstat};
    for (unsigned i = 0; i < 5; i++) {
        when(stats[i]);
        load(LOW(5)); /* no stat has a sixth argument: this one comes from swift.c */
        emit(BPF_IF_EQUAL, (uint32_t)settings.cookie, 0, 2);
        load(HIGH(5));
        emit(BPF_IF_EQUAL, (uint32_t)(settings.cookie >> 32), 1, 0);
        ask();
        allow();
        done();
    }
    /* What changes whose eyes, or which root, a path is looked up with. */
    static const uint32_t changes[] = {
        SYS_setuid,   SYS_setgid,    SYS_setreuid, SYS_setregid, SYS_setgroups,
        SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_capset,
        SYS_chroot,   SYS_pivot_root, SYS_setns,    SYS_unshare};
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) ask_about(changes[i]);
    when(SYS_clone);
    load(LOW(0));
    emit(BPF_IF_ANY_BIT, 0x10020000, 1, 0); /* CLONE_NEWUSER, CLONE_NEWNS */
    allow();
    ask();
    done();
}

static void families(void) {
    when(SYS_socket);
    load(LOW(0));
    emit(BPF_IF_EQUAL, 40, 2, 0); /* AF_VSOCK: no network namespace covers it */
    emit(BPF_IF_EQUAL, 38, 1, 0); /* AF_ALG */
    allow();
    give(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    done();
}

/* A process that is not dumpable keeps its own user out, and with it a supervisor without rights.
 * So it is told that it is, and stays as it was: its user's other programs could look anyway. */
static void openness(void) {
    when(SYS_prctl);
    load(LOW(0));
    emit(BPF_IF_EQUAL, 4, 1, 0); /* PR_SET_DUMPABLE */
    allow();
    load(LOW(1));
    emit(BPF_IF_EQUAL, 0, 1, 0);
    allow();
    give(SECCOMP_RET_ERRNO | 0);
    done();
}

static void guarding(void) {
    /* Asked about only when they name a process: 0 is the caller. */
    static const struct {
        uint32_t nr;
        unsigned argument;
    } named[] = {{SYS_kill, 0},           {SYS_tkill, 0},          {SYS_tgkill, 0},
                 {SYS_rt_sigqueueinfo, 0}, {SYS_rt_tgsigqueueinfo, 0}, {NR_pidfd_open, 0},
                 {NR_pidfd_send_signal, 1}, {SYS_ptrace, 1},        {SYS_process_vm_readv, 0},
                 {SYS_process_vm_writev, 0}, {SYS_prlimit64, 0},    {SYS_sched_setparam, 0},
                 {SYS_sched_setscheduler, 0}, {SYS_sched_setattr, 0}, {SYS_sched_setaffinity, 0},
                 {SYS_migrate_pages, 0},  {SYS_move_pages, 0},      {SYS_setpgid, 0}};
    for (unsigned i = 0; i < sizeof named / sizeof *named; i++) {
        when(named[i].nr);
        load(LOW(named[i].argument));
        emit(BPF_IF_EQUAL, 0, 0, 1);
        allow();
        ask();
        done();
    }
    ask_about(SYS_setpriority); /* these name users and groups too, where 0 is no exception */
    ask_about(SYS_ioprio_set);
    /* A descriptor that sends a signal of one's choice to its owner: F_SETOWN, F_SETOWN_EX. */
    when(SYS_fcntl);
    load(LOW(1));
    emit(BPF_IF_EQUAL, 8, 2, 0);
    emit(BPF_IF_EQUAL, 15, 2, 0);
    allow();
    ask();
    give(SECCOMP_RET_ERRNO | EPERM);
    done();
    when(SYS_ioctl); /* FIOSETOWN, SIOCSPGRP: the same, with the owner in memory */
    load(LOW(1));
    emit(BPF_IF_EQUAL, 0x8901, 2, 0);
    emit(BPF_IF_EQUAL, 0x8902, 1, 0);
    allow();
    give(SECCOMP_RET_ERRNO | EPERM);
    done();
}

unsigned filter_build(struct sock_filter *filter) {
    code = filter;
    at = 0;
    load(offsetof(struct seccomp_data, arch));
    emit(BPF_IF_EQUAL, AUDIT_ARCH_X86_64, 1, 0);
    give(SECCOMP_RET_ERRNO | ENOSYS); /* i386: other numbers, other structs */
    load(offsetof(struct seccomp_data, nr));
    emit(BPF_IF_AT_LEAST, X32_SYSCALL_BIT, 0, 1);
    give(SECCOMP_RET_ERRNO | ENOSYS);
    waits();
    clocks();
    files();
    families();
    if (settings.seeded) ask_about(SYS_getrandom);
    if (settings.blind) openness();
    if (settings.guard) guarding();
    allow();
    return at;
}

int filter_install(void) {
    struct sock_filter filter[FILTER_MOST];
    struct sock_fprog program = {(unsigned short)filter_build(filter), filter};
    /* Once we have looked at a call only death ends it, so that no signal makes it happen twice. */
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (fd < 0 && errno == EINVAL) /* before Linux 5.19 */
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd < 0 ? -errno : (int)fd;
}
#else
unsigned filter_build(struct sock_filter *filter) {
    (void)filter;
    return 0;
}
int filter_install(void) { return -ENOSYS; }
#endif
