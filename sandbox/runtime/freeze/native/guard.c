/* The guarded process is as untouchable for the box's programs as process 1 is by nature. */
#define _GNU_SOURCE
#include "still.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In a namespace of its own a program's numbers are not ours, and cannot mean the guarded one. */
static int same_numbers(pid_t tid) {
    char path[64], theirs[64], ours[64];
    put_text(put_number(put_text(path, "/proc/"), tid), "/ns/pid");
    ssize_t n = readlink(path, theirs, sizeof theirs), m = readlink("/proc/self/ns/pid", ours, sizeof ours);
    return n <= 0 || m <= 0 || (n == m && !memcmp(theirs, ours, (size_t)n));
}

static int is_guarded(pid_t tid) {
    return tid == settings.guarded || (tid > 0 && group_of(tid) == settings.guarded);
}

static pid_t process_behind(pid_t tid, int descriptor) {
    char name[48], text[1024];
    put_number(put_text(name, "fdinfo/"), descriptor);
    int n = read_proc(tid, name, text, sizeof text - 1);
    if (n > 0) {
        text[n] = 0;
        long pid = proc_number(text, "\nPid:\t", 10, 0);
        if (pid > 0) return (pid_t)pid;
    }
    /* A folder of /proc serves as a pidfd too. */
    char path[80], link[64];
    put_number(put_text(put_number(put_text(path, "/proc/"), tid), "/fd/"), descriptor);
    n = (int)readlink(path, link, sizeof link - 1);
    if (n <= 6 || strncmp(link, "/proc/", 6)) return 0;
    link[n] = 0;
    return (pid_t)atoi(link + 6);
}

struct entry { /* struct linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

/* kill(-1): everybody but process 1, the guarded one and the caller. */
static void kill_all(pid_t caller, int signal, struct answer *answer) {
    char bytes[4096] __attribute__((aligned(8)));
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
    long n;
    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, bytes, sizeof bytes)) > 0)
        for (long at = 0; at < n;) {
            const struct entry *entry = (const void *)(bytes + at);
            at += entry->size;
            pid_t pid = (pid_t)atoi(entry->name);
            if (pid <= 1 || pid == caller || pid == settings.guarded || pid == getpid()) continue;
            if (!kill(pid, signal)) found = 1;
        }
    if (fd >= 0) close(fd);
    answer->goes_on = 0;
    answer->error = found ? 0 : -ESRCH;
}

static int touches(const struct seccomp_notif *asked) {
    const uint64_t *a = asked->data.args;
    int first = (int)a[0], second = (int)a[1];
    switch (asked->data.nr) {
    case SYS_kill: return first < -1 ? is_guarded(-first) : is_guarded(first);
    case SYS_fcntl: return is_guarded((int)a[2] < 0 ? -(int)a[2] : (int)a[2]);
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo: return is_guarded(first) || is_guarded(second);
    case NR_pidfd_send_signal: return is_guarded(process_behind((pid_t)asked->pid, first));
    case SYS_ptrace: /* PTRACE_TRACEME names nobody */
        return first != 0 && is_guarded(second);
    case SYS_setpriority: return first == 2 || is_guarded(second); /* 2: all of a user's */
    case SYS_ioprio_set: return first == 3 || is_guarded(second);
    default: return is_guarded(first);
    }
}

void answer_signal(const struct seccomp_notif *asked, struct answer *answer) {
    pid_t caller = group_of((pid_t)asked->pid);
    answer->goes_on = CONTINUE;
    if (!settings.guarded || caller == settings.guarded || !same_numbers((pid_t)asked->pid)) return;
    if (asked->data.nr == SYS_kill && (int)asked->data.args[0] == -1) {
        char text[1024];
        int n = read_proc((pid_t)asked->pid, "status", text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        const char *uid = strstr(text, "\nUid:\t");
        uid = uid ? strchr(uid + 6, '\t') : NULL;
        /* Anybody else's signals do not reach what belongs to root. */
        if (uid && strtoul(uid + 1, NULL, 10) == 0) kill_all(caller, (int)asked->data.args[1], answer);
        return;
    }
    if (!touches(asked)) return;
    answer->goes_on = 0;
    answer->error = -EPERM;
}
