/* Another process: its memory, its entries in /proc, and being no more than it is. */
#define _GNU_SOURCE
#include "still.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct creds own, known[256];
static struct stat own_root;
static char own_mounts[64];
static uint32_t epoch = 1;
static int mixed;
static int by_itself;
static int lowered; /* this thread is as little as the other already */

static ssize_t whole_read(int fd, void *to, size_t size) {
    size_t got = 0;
    while (got < size) {
        ssize_t n = read(fd, (char *)to + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Raw: a libc that does not trust the kernel with O_CLOEXEC makes two calls of it. */
static int open_path(const char *path, int flags) {
    int fd;
    do fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* What another user's process has in /proc opens to that user, by the file system's ids. */
int open_proc(pid_t tid, const char *name, int flags) {
    char path[64];
    put_text(put_text(put_number(put_text(path, "/proc/"), tid), "/"), name);
    int fd = open_path(path, flags);
    if (fd >= 0 || (errno != EACCES && errno != EPERM) || lowered) return fd;
    lowered = 1; /* whom to be is read there, too */
    int changed = creds_assume(tid);
    if (changed == 1) {
        fd = open_path(path, flags);
        creds_leave();
    }
    lowered = 0;
    return fd;
}

int read_proc(pid_t tid, const char *name, void *to, size_t size) {
    int fd = open_proc(tid, name, O_RDONLY);
    if (fd < 0) return -1;
    ssize_t n = whole_read(fd, to, size);
    close(fd);
    return (int)n;
}

long proc_number(const char *text, const char *label, int base, long fallback) {
    const char *at = strstr(text, label);
    return at ? (long)strtoul(at + strlen(label), NULL, base) : fallback;
}

pid_t group_of(pid_t tid) {
    char text[512];
    int n = read_proc(tid, "status", text, sizeof text - 1);
    if (n < 0) return -1;
    text[n] = 0;
    return (pid_t)proc_number(text, "\nTgid:\t", 10, tid);
}

/* /proc/PID/mem reaches what process_vm_* does not: pages that are read-only to the process, and,
 * since it goes by the file system's ids, a process of another user whose ids this thread takes. */
static int by_file(pid_t tid, uint64_t address, void *bytes, size_t size, int writing) {
    int fd = open_proc(tid, "mem", writing ? O_RDWR : O_RDONLY);
    if (fd < 0) return -1;
    ssize_t n = writing ? pwrite(fd, bytes, size, (off_t)address) : pread(fd, bytes, size, (off_t)address);
    close(fd);
    return n == (ssize_t)size ? 0 : -1;
}

/* The library's own process asks too, and it hides its memory even from what /proc shows to itself. */
static int is_own(pid_t tid) { return tid == own.tid; }

int peek(pid_t tid, uint64_t address, void *to, size_t size) {
    if (is_own(tid)) return memcpy(to, (const void *)(uintptr_t)address, size), 0;
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)address, size};
    if (process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)size) return 0;
    return by_file(tid, address, to, size, 0);
}

int poke(pid_t tid, uint64_t address, const void *from, size_t size) {
    if (is_own(tid)) return memcpy((void *)(uintptr_t)address, from, size), 0;
    struct iovec here = {(void *)(uintptr_t)from, size}, there = {(void *)(uintptr_t)address, size};
    if (process_vm_writev(tid, &here, 1, &there, 1, 0) == (ssize_t)size) return 0;
    return by_file(tid, address, (void *)(uintptr_t)from, size, 1);
}

int peek_string(pid_t tid, uint64_t address, char *to, size_t size) {
    size_t got = 0;
    while (got < size) {
        size_t piece = 4096 - ((address + got) & 4095); /* never across into a page that is not there */
        if (piece > 256) piece = 256;
        if (piece > size - got) piece = size - got;
        if (peek(tid, address + got, to + got, piece)) return -1;
        if (memchr(to + got, 0, piece)) return 0;
        got += piece;
    }
    return -1;
}

static int parse_creds(pid_t tid, struct creds *into) {
    char text[4096];
    int n = read_proc(tid, "status", text, sizeof text - 1);
    if (n <= 0) return -1;
    text[n] = 0;
    const char *uid = strstr(text, "\nUid:\t"), *gid = strstr(text, "\nGid:\t");
    if (!uid || !gid) return -1;
    uid += 6, gid += 6;
    for (int i = 0; i < 4; i++) { /* real, effective, saved, file system: the last stays */
        into->uid = (uint32_t)strtoul(uid, (char **)&uid, 10);
        into->gid = (uint32_t)strtoul(gid, (char **)&gid, 10);
    }
    into->group_count = 0;
    const char *group = strstr(text, "\nGroups:\t");
    for (group = group ? group + 9 : ""; *group >= '0' && *group <= '9';) {
        if (into->group_count == 32) break;
        into->groups[into->group_count++] = (uint32_t)strtoul(group, (char **)&group, 10);
        while (*group == ' ') group++;
    }
    const char *effective = strstr(text, "\nCapEff:\t");
    into->overrides = effective && (strtoull(effective + 9, NULL, 16) >> CAP_DAC_OVERRIDE & 1);
    into->tid = tid;
    return 0;
}

/* A folder in a namespace of mounts: the same folder may be another's root over other mounts. */
static void root_of(pid_t tid, struct stat *root, char mounts[64]) {
    char path[48], *end = put_text(put_number(put_text(path, "/proc/"), tid), "/");
    memset(root, 0, sizeof *root);
    memset(mounts, 0, 64);
    put_text(end, "root");
    if (stat(path, root)) return;
    put_text(end, "ns/mnt");
    if (readlink(path, mounts, 63) < 0) mounts[0] = 0;
}

/* Whether a path means the same to both. Asked with the other's rights taken. */
int same_root(pid_t tid) {
    struct creds *entry = &known[(uint32_t)tid % (sizeof known / sizeof *known)];
    struct stat root;
    char mounts[64];
    if (entry->tid == tid && entry->epoch == epoch && entry->same_root >= 0) return entry->same_root;
    root_of(tid, &root, mounts);
    int same = root.st_dev == own_root.st_dev && root.st_ino == own_root.st_ino && !strcmp(mounts, own_mounts);
    if (entry->tid == tid) entry->same_root = same;
    return same;
}

static void remember_root(void) { root_of((pid_t)syscall(SYS_gettid), &own_root, own_mounts); }

void creds_remember_own(void) {
    struct cap_header head = {CAP_VERSION_3, 0};
    struct cap_data data[2] = {{0}, {0}};
    int count = getgroups(32, own.groups);
    own.tid = getpid();
    own.uid = geteuid(), own.gid = getegid();
    own.group_count = count < 0 ? 0 : count;
    own.overrides = !syscall(SYS_capget, &head, data) && (data[0].effective >> CAP_DAC_OVERRIDE & 1);
    /* Usually root's rights to files go and come back with its file system's id by themselves. */
    by_itself = own.uid == 0 && !(prctl(PR_GET_SECUREBITS) & SECBIT_NO_FIXUP);
    remember_root();
}

/* Numbers we are told are of our namespace of processes; another one's /proc has others by them. */
int proc_is_ours(void) {
    char link[32], number[32];
    ssize_t n = readlink("/proc/self", link, sizeof link - 1);
    if (n <= 0) return 0;
    link[n] = 0;
    put_number(number, getpid());
    return !strcmp(link, number);
}

void creds_changed(void) {
    epoch++;
    remember_root(); /* as threads of one process we have one root */
    mixed = 1;
}

int creds_mixed(void) { return mixed; }

/* What a thread may, remembered for a second at most: a number can come to mean another one. */
static const struct creds *creds_of(pid_t tid) {
    struct creds *entry = &known[(uint32_t)tid % (sizeof known / sizeof *known)];
    int64_t now = clock_mono();
    if (entry->tid == tid && entry->epoch == epoch && now < entry->until) return entry;
    entry->tid = 0;
    entry->same_root = -1;
    if (parse_creds(tid, entry)) return NULL;
    entry->epoch = epoch;
    entry->until = now + NANO;
    return entry;
}

static void overrides(int on) {
    struct cap_header head = {CAP_VERSION_3, 0};
    struct cap_data data[2] = {{0}, {0}};
    uint32_t bits = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    if (syscall(SYS_capget, &head, data)) return;
    if (on) data[0].effective |= data[0].permitted & bits;
    else data[0].effective &= ~bits;
    syscall(SYS_capset, &head, data);
}

static int changed_groups, gave_up_rights;

/* Raw calls: they change this thread only, while libc's would change them all. */
int creds_assume(pid_t tid) {
    const struct creds *theirs = creds_of(tid);
    if (!theirs) return -1;
    int same_groups = theirs->group_count == own.group_count &&
                      !memcmp(theirs->groups, own.groups, sizeof(uint32_t) * (size_t)own.group_count);
    int same_rights = theirs->overrides || !own.overrides;
    if (theirs->uid == own.uid && theirs->gid == own.gid && same_groups && same_rights) return 0;
    if (!same_groups) syscall(SYS_setgroups, theirs->group_count, theirs->groups);
    syscall(SYS_setfsgid, theirs->gid);
    syscall(SYS_setfsuid, theirs->uid);
    gave_up_rights = !same_rights && !(by_itself && theirs->uid);
    changed_groups = !same_groups;
    if (gave_up_rights) overrides(0);
    lowered = 1;
    return 1;
}

void creds_leave(void) {
    syscall(SYS_setfsuid, own.uid);
    syscall(SYS_setfsgid, own.gid);
    if (changed_groups) syscall(SYS_setgroups, own.group_count, own.groups);
    if (gave_up_rights) overrides(1);
    lowered = 0;
}
