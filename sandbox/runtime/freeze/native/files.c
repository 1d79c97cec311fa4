/* stat and its family, done for the caller: the same answer, with the times of files that were made
 * in this box on the frozen axis. Errors whose reason may be our way of looking go on to the kernel,
 * which then says what is true; an error tells no time. */
#define _GNU_SOURCE
#include "still.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct question {
    pid_t tid;
    int dirfd, flags, extended;
    unsigned mask;
    uint64_t path_at, answer_at;
    char path[4096];
};

static int rooted; /* somebody may have another root, or other mounts, than we */
void roots_changed(void) { rooted = 1; }

static void read_question(const struct seccomp_notif *asked, struct question *q) {
    const uint64_t *a = asked->data.args;
    q->tid = (pid_t)asked->pid;
    q->dirfd = AT_FDCWD;
    q->flags = q->extended = 0;
    switch (asked->data.nr) {
#ifdef SYS_stat
    case SYS_lstat: q->flags = AT_SYMLINK_NOFOLLOW; /* fallthrough */
    case SYS_stat: q->path_at = a[0], q->answer_at = a[1]; break;
#endif
    case SYS_fstat:
        q->dirfd = (int)a[0], q->path_at = 0, q->flags = AT_EMPTY_PATH, q->answer_at = a[1];
        break;
    case SYS_newfstatat:
        q->dirfd = (int)a[0], q->path_at = a[1], q->answer_at = a[2], q->flags = (int)a[3];
        break;
    default:
        q->dirfd = (int)a[0], q->path_at = a[1], q->flags = (int)a[2], q->mask = (unsigned)a[3];
        q->answer_at = a[4], q->extended = 1;
    }
}

static const char *behind(const char *path, const char *prefix) {
    size_t size = strlen(prefix);
    return strncmp(path, prefix, size) || (path[size] && path[size] != '/') ? NULL : path + size;
}

/* The caller's own things under names that mean ours when we use them. */
static int own_name(const struct question *q, char *to) {
    const char *path = q->path, *rest;
    while (path[0] == '/' && path[1] == '/') path++;
    int link_itself = q->flags & AT_SYMLINK_NOFOLLOW;
    if (!behind(path, "/proc") && !behind(path, "/dev")) return 0;
    char *start = put_number(put_text(to, "/proc/"), q->tid);
    if ((rest = behind(path, "/proc/self")) || (rest = behind(path, "/proc/thread-self"))) {
        if (!*rest && link_itself) return 0;
        put_text(start, rest);
        return 1;
    }
    if ((rest = behind(path, "/dev/fd"))) {
        if (!*rest && link_itself) return 0;
        put_text(put_text(start, "/fd"), rest);
        return 1;
    }
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (int i = 0; i < 3; i++)
        if (!link_itself && (rest = behind(path, standard[i]))) {
            put_text(put_number(put_text(start, "/fd/"), i), rest);
            return 1;
        }
    return 0;
}

/* Where the kernel is to look, for us; 1 when the caller's root has no part in it. */
static int full_name(const struct question *q, int by_descriptor, char *to) {
    if (!by_descriptor && q->path[0] == '/') {
        if (own_name(q, to)) return 1;
        put_text(to, q->path);
        return 0;
    }
    char *end = put_number(put_text(to, "/proc/"), q->tid);
    end = q->dirfd == AT_FDCWD ? put_text(end, "/cwd") : put_number(put_text(end, "/fd/"), q->dirfd);
    if (!by_descriptor) put_text(put_text(end, "/"), q->path);
    return by_descriptor;
}

static int within(const char *place, const char *root, char *to) {
    size_t size = strlen(root);
    if (size == 1) size = 0;
    if (strncmp(place, root, size) || (place[size] && place[size] != '/')) return -1;
    put_text(to, place + size);
    return 0;
}

static int read_link(pid_t tid, const char *name, int number, char *to, size_t size) {
    char path[64], *end = put_text(put_text(put_number(put_text(path, "/proc/"), tid), "/"), name);
    if (number >= 0) put_number(put_text(end, "/"), number);
    ssize_t n = readlink(path, to, size - 1);
    if (n <= 0 || to[0] != '/') return -1;
    to[n] = 0;
    return 0;
}

/* A descriptor for what a caller with another root, or other mounts, names. */
static int open_in_root(const struct question *q) {
    char path[8400], place[4096], root[4096];
    if (q->path[0] == '/') {
        put_text(path, q->path);
    } else {
        int here = q->dirfd == AT_FDCWD;
        if (read_link(q->tid, here ? "cwd" : "fd", here ? -1 : q->dirfd, place, sizeof place) ||
            read_link(q->tid, "root", -1, root, sizeof root) || within(place, root, path))
            return -1;
        put_text(put_text(path + strlen(path), "/"), q->path);
    }
    int base = open_proc(q->tid, "root", O_PATH | O_DIRECTORY);
    if (base < 0) return -1;
    int nofollow = q->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
    struct open_how how = {(uint64_t)(O_PATH | O_CLOEXEC | nofollow), 0, RESOLVE_IN_ROOT};
    int fd = (int)syscall(NR_openat2, base, path, &how, sizeof how);
    int error = errno;
    close(base);
    errno = error;
    return fd;
}

static long look(int dirfd, const char *name, int flags, const struct question *q, void *found) {
    return q->extended ? syscall(SYS_statx, dirfd, name, flags, q->mask, found)
                       : syscall(SYS_newfstatat, dirfd, name, found, flags);
}

/* The last asker, who is mostly the next one too. It cannot come to mean another: what is held
 * stands for the one that has ended, and then gives nothing. */
static int borrow(pid_t tid, int theirs) {
    static pid_t last;
    static int process = -1;
    for (int again = 0; again < 2; again++) {
        if (last != tid || again) {
            if (process >= 0) close(process);
            process = (int)syscall(NR_pidfd_open, tid, 0);
            if (process < 0) process = (int)syscall(NR_pidfd_open, tid, PIDFD_THREAD);
            last = tid;
        }
        int fd = process < 0 ? -1 : (int)syscall(NR_pidfd_getfd, process, theirs, 0);
        if (fd >= 0 || (process >= 0 && errno == EBADF)) return fd;
    }
    return -1;
}

/* Its descriptor, borrowed: cheaper than its name in /proc, and as good to everybody, since what is
 * open was allowed when it was opened. -2 when that is not to be had. */
static long look_at_descriptor(const struct question *q, void *found) {
    int fd = borrow(q->tid, q->dirfd);
    if (fd < 0) return -2;
    int flags = (q->flags & ~AT_SYMLINK_NOFOLLOW) | AT_EMPTY_PATH;
    long result = q->extended ? look(fd, "", flags, q, found) : syscall(SYS_fstat, fd, found);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static long look_up(const struct question *q, int by_descriptor, void *found) {
    char name[4200];
    int flags = q->flags & ~AT_EMPTY_PATH;
    if (by_descriptor) flags &= ~AT_SYMLINK_NOFOLLOW; /* what it shows is a link of /proc's */
    int anywhere = full_name(q, by_descriptor, name);
    if (!rooted || anywhere || same_root(q->tid)) return look(AT_FDCWD, name, flags, q, found);
    int fd = open_in_root(q);
    if (fd < 0) return -1;
    long result = look(fd, "", (flags & ~AT_SYMLINK_NOFOLLOW) | AT_EMPTY_PATH, q, found);
    close(fd);
    return result;
}

/* Whether an error is the caller's, whichever way we looked. */
static int certain(const struct question *q, int error) {
    return !rooted && q->path[0] == '/' && strncmp(q->path, "/proc", 5) && strncmp(q->path, "/dev", 4) &&
           (error == ENOENT || error == ENOTDIR || error == ELOOP);
}

/* Devices, pipes and sockets come from no archive: nobody meant their times. */
static int made_here(uint32_t mode) { return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode); }

/* swift.c does the same. */
static void freeze_times(const struct question *q, void *found) {
    int64_t sec, nsec, now = clock_real();
    if (q->extended) {
        struct kernel_statx *x = found;
        struct statx_time *times[] = {&x->atime, &x->btime, &x->ctime, &x->mtime};
        for (int i = 0; i < 4; i++) {
            sec = times[i]->sec, nsec = times[i]->nsec;
            freeze_file_time(&sec, &nsec, now, i == 1 || i == 2 || made_here(x->mode));
            times[i]->sec = sec, times[i]->nsec = (uint32_t)nsec;
        }
        return;
    }
    struct stat *s = found; /* on 64 bits libc's is the kernel's */
    struct timespec *times[] = {&s->st_atim, &s->st_mtim, &s->st_ctim};
    for (int i = 0; i < 3; i++) {
        sec = times[i]->tv_sec, nsec = times[i]->tv_nsec;
        freeze_file_time(&sec, &nsec, now, i == 2 || made_here(s->st_mode));
        times[i]->tv_sec = sec, times[i]->tv_nsec = nsec;
    }
}

void answer_stat(int listener, const struct seccomp_notif *asked, struct answer *answer) {
    struct question q;
    union {
        struct stat plain;
        struct kernel_statx extended;
    } found;
    answer->goes_on = CONTINUE;
    read_question(asked, &q);
    q.path[0] = 0;
    if (q.path_at && peek_string(q.tid, q.path_at, q.path, sizeof q.path)) return;
    int by_descriptor = !q.path[0];
    if (by_descriptor && !(q.flags & AT_EMPTY_PATH)) return;
    if (q.dirfd < 0 && q.dirfd != AT_FDCWD && q.path[0] != '/') return;
    long result = by_descriptor && q.dirfd != AT_FDCWD ? look_at_descriptor(&q, &found) : -2;
    if (result == -2) {
        int lowered = creds_mixed() ? creds_assume(q.tid) : 0;
        if (lowered < 0) return;
        result = look_up(&q, by_descriptor, &found);
        int lookups = errno;
        if (lowered) creds_leave();
        errno = lookups;
    }
    int error = errno;
    /* Has the caller ended? Then its number may be another's, and what we saw too. */
    if (!still_asked(listener, asked->id)) return;
    if (result) {
        if (!certain(&q, error)) return;
        answer->error = -error;
    } else {
        freeze_times(&q, &found);
        swift_consider(asked);
        size_t size = q.extended ? sizeof found.extended : sizeof found.plain;
        answer->error = poke(q.tid, q.answer_at, &found, size) ? -EFAULT : 0;
    }
    answer->goes_on = 0;
}
