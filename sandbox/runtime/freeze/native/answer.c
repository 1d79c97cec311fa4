/* One notification, answered. */
#define _GNU_SOURCE
#include "still.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int still_asked(int listener, uint64_t id) {
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Another user's only as that user, where we lack the right to look at anybody. */
static int read_auxv(pid_t tid, void *to, size_t size) {
    int n = read_proc(tid, "auxv", to, size);
    if (n > 0 || creds_assume(tid) != 1) return n;
    n = read_proc(tid, "auxv", to, size);
    creds_leave();
    return n;
}

/* After an exec, before the program's first look at a clock: its vDSO, and its AT_RANDOM. */
static int dress(pid_t tid) {
    uint64_t aux[128], at = 0, random = 0;
    int n = read_auxv(tid, aux, sizeof aux), bad = 0;
    if (n <= 0) return -1;
    for (int i = 0; i + 1 < n / 8 && aux[i]; i += 2) {
        if (aux[i] == AT_SYSINFO_EHDR) at = aux[i + 1];
        if (aux[i] == AT_RANDOM) random = aux[i + 1];
        if (aux[i] == AT_SECURE && aux[i + 1]) creds_changed(); /* a setuid program */
    }
    if (!at && vdso.size) return 0;
    int fd = open_proc(tid, "mem", O_RDWR);
    if (fd < 0) return -1;
    size_t size = vdso.to - vdso.from;
    if (at && pwrite(fd, vdso.image + vdso.from, size, (off_t)(at + vdso.from)) != (ssize_t)size) bad = -1;
    if (random && settings.seeded) {
        uint8_t bytes[16];
        random_begin(tid, bytes);
        if (pwrite(fd, bytes, sizeof bytes, (off_t)random) != sizeof bytes) bad = -1;
    }
    close(fd);
    swift_forget(tid, at);
    return bad;
}

static void tell_time(const struct seccomp_notif *asked, struct answer *answer) {
    const uint64_t *a = asked->data.args;
    pid_t tid = (pid_t)asked->pid;
    int64_t now = frozen_now();
    int64_t pair[2] = {now / NANO, now % NANO}, zone = 0;
    if (pair[1] < 0) pair[1] += NANO, pair[0]--;
    switch (asked->data.nr) {
#ifdef SYS_time
    case SYS_time:
        answer->value = pair[0];
        if (a[0] && poke(tid, a[0], pair, 8)) answer->error = -EFAULT;
        break;
#endif
    case SYS_gettimeofday:
        pair[1] /= 1000;
        if ((a[0] && poke(tid, a[0], pair, sizeof pair)) || (a[1] && poke(tid, a[1], &zone, 8)))
            answer->error = -EFAULT;
        break;
    default:
        if (poke(tid, a[1], pair, sizeof pair)) answer->error = -EFAULT;
    }
    if (answer->error) answer->value = 0;
}

void answer_one(int listener, const struct seccomp_notif *asked, struct answer *answer) {
    *answer = (struct answer){0, 0, 0};
    switch (asked->data.nr) {
#ifdef SYS_arch_prctl
    case SYS_arch_prctl:
        if (dress((pid_t)asked->pid) == 0) answer->goes_on = CONTINUE;
        else answer->error = -EPERM; /* libc then ends the program: better none than an unfrozen one */
        return;
#endif
#ifdef SYS_time
    case SYS_time:
#endif
    case SYS_clock_gettime:
    case SYS_gettimeofday: tell_time(asked, answer); return;
#ifdef SYS_stat
    case SYS_stat:
    case SYS_lstat:
#endif
    case SYS_newfstatat:
    case SYS_fstat:
    case SYS_statx: answer_stat(listener, asked, answer); return;
    case SYS_futex:
    case NR_futex_wait:
    case NR_futex_waitv:
    case SYS_clock_nanosleep:
    case SYS_timerfd_settime:
    case SYS_timer_settime:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
        answer_wait(asked);
        answer->goes_on = CONTINUE;
        return;
    case SYS_getrandom: answer_random(asked, answer); return;
    case SYS_chroot:
    case SYS_pivot_root:
    case SYS_setns:
    case SYS_unshare:
    case SYS_clone: roots_changed(); /* fallthrough */
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setgroups:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setfsuid:
    case SYS_setfsgid:
    case SYS_capset:
        creds_changed();
        answer->goes_on = CONTINUE;
        return;
    default: answer_signal(asked, answer);
    }
}
