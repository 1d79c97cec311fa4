/* The least a box can cost: what the kernel takes for all of it, and nothing else.
 *
 *     raw FOLDER LOWER...
 *
 * For each line of input makes a box in a new folder below FOLDER and runs `true` of the image in
 * it: all namespaces in one clone3, an overlay over the LOWERs (the topmost first), /dev, /proc,
 * pivot_root, exec. A line `plain` makes it as the host's root; `mapped` in a user namespace, with
 * layers whose owners are mapped. Answers each with the microseconds from before the clone to after
 * the end of `true`, or with `error WHAT`. No control groups, no seccomp, no limits: no runtime can
 * do without those, so none can be as fast.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* glibc's <sys/mount.h> and the kernel's <linux/mount.h> cannot be included together. */
int mount(const char *, const char *, const char *, unsigned long, const void *);
int umount2(const char *, int);
#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum { OWNER = 200000, IDS = 65536, OPTIONS = 16384 };
static const unsigned long NAMESPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                                        CLONE_NEWCGROUP | CLONE_NEWNET;
static const char *const DEVICES[] = {"null", "zero", "full", "random", "urandom", "tty"};

static int report = -1; /* a pipe, by which a box says what failed */

static void fail(const char *what) {
    char text[256];
    int length = snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
    if (write(report, text, (size_t)length) < 0) _exit(8);
    _exit(9);
}

static void check(long result, const char *what) {
    if (result < 0) fail(what);
}

static long clone3(unsigned long flags) {
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    return syscall(SYS_clone3, &args, sizeof args);
}

static long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void map_ids(pid_t pid, const char *which) {
    char path[64], line[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, which);
    int length = snprintf(line, sizeof line, "0 %d %d", OWNER, IDS);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    check(fd, path);
    check(write(fd, line, (size_t)length), path);
    close(fd);
}

/* A user namespace that lives as long as its descriptor: made once, as a runtime would. */
static int user_namespace(void) {
    char path[64];
    pid_t pid = (pid_t)clone3(CLONE_NEWUSER);
    check(pid, "clone3 of a user namespace");
    if (pid == 0) {
        pause();
        _exit(0);
    }
    map_ids(pid, "uid_map");
    map_ids(pid, "gid_map");
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd, path);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return fd;
}

static void mount_mapped(const char *source, const char *target, int users) {
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)users};
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    check(tree, "open_tree");
    check(syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes),
          "mount_setattr");
    check(syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH),
          "move_mount");
    close(tree);
}

/* An overlay writes as whoever mounts it, who must be mapped where the files are. Changing who we
 * are to files takes capabilities away: take them back. */
static void act_as(unsigned owner) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    setfsuid(owner);
    setfsgid(owner);
    check(syscall(SYS_capget, &header, sets), "capget");
    for (int i = 0; i < 2; i++) sets[i].effective = sets[i].permitted;
    check(syscall(SYS_capset, &header, sets), "capset");
}

static void make_overlay(int count, char **lowers, int users) {
    static char options[OPTIONS];
    char name[32];
    int used = snprintf(options, sizeof options, "lowerdir=");
    if (users >= 0) {
        check(mount("tmpfs", "stage", "tmpfs", 0, "size=64k"), "mount a stage");
        check(mkdir("stage/own", 0700), "mkdir");
        mount_mapped(".", "stage/own", users);
    }
    for (int i = 0; i < count; i++) {
        const char *lower = lowers[i];
        if (users >= 0) {
            snprintf(name, sizeof name, "stage/%d", i);
            check(mkdir(name, 0700), "mkdir");
            mount_mapped(lower, name, users);
            lower = name;
        }
        used += snprintf(options + used, sizeof options - (size_t)used, "%s%s", i ? ":" : "", lower);
        if (used >= OPTIONS) errno = E2BIG, fail("options of the overlay");
    }
    const char *own = users >= 0 ? "stage/own/" : "";
    snprintf(options + used, sizeof options - (size_t)used,
             ",upperdir=%supper,workdir=%swork,volatile", own, own);
    if (users >= 0) act_as(OWNER);
    check(mount("overlay", "root", "overlay", 0, options), "mount the overlay");
    if (users >= 0) act_as(0);
}

static void fill_dev(int users) {
    char source[32], target[32], options[96];
    check(mount("tmpfs", "dev", "tmpfs", MOUNT_ATTR_NOSUID, "size=64k,mode=755"), "mount /dev");
    for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++) {
        snprintf(source, sizeof source, "/dev/%s", DEVICES[i]);
        snprintf(target, sizeof target, "dev/%s", DEVICES[i]);
        int fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        check(fd, target);
        close(fd);
        check(mount(source, target, NULL, 4096 /* MS_BIND */, NULL), source);
    }
    check(mkdir("dev/pts", 0755), "mkdir");
    check(mkdir("dev/shm", 01777), "mkdir");
    snprintf(options, sizeof options, "newinstance,ptmxmode=0666,gid=%d",
             users >= 0 ? OWNER + 5 : 5);
    check(mount("devpts", "dev/pts", "devpts", 0, options), "mount /dev/pts");
    check(mount("shm", "dev/shm", "tmpfs", 0, "mode=1777,size=64m"), "mount /dev/shm");
}

static void box(const char *folder, int count, char **lowers, int users) {
    static char *arguments[] = {"true", NULL};
    static char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    check(mount(NULL, "/", NULL, 16384 | 262144 /* MS_REC | MS_PRIVATE */, NULL), "make private");
    check(chdir(folder), folder);
    make_overlay(count, lowers, users);
    check(chdir("root"), "enter the overlay");
    check(mount("proc", "proc", "proc", 0, NULL), "mount /proc");
    fill_dev(users);
    check(syscall(SYS_pivot_root, ".", "."), "pivot_root");
    check(umount2(".", MNT_DETACH), "let go of the old root");
    if (users >= 0) {
        check(setns(users, CLONE_NEWUSER), "setns");
        check(setresgid(0, 0, 0), "setresgid");
        check(setresuid(0, 0, 0), "setresuid");
    }
    check(chdir("/"), "chdir");
    execve("/usr/bin/true", arguments, environment);
    execve("/bin/true", arguments, environment);
    fail("run true");
}

static void make_folders(char *folder, size_t size, const char *parent, int number) {
    static const char *const names[] = {"", "/upper", "/work", "/root", "/stage"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(folder, size, "%s/raw.%d%s", parent, number, names[i]);
        check(mkdir(folder, 0755), folder);
    }
    snprintf(folder, size, "%s/raw.%d", parent, number);
}

static void one(const char *parent, int number, int count, char **lowers, int users) {
    char folder[PATH_MAX], said[256];
    int ends[2], status = 0;
    check(pipe2(ends, O_CLOEXEC), "pipe");
    report = ends[1];
    long long began = microseconds();
    make_folders(folder, sizeof folder, parent, number);
    pid_t pid = (pid_t)clone3(NAMESPACES);
    if (pid == 0) box(folder, count, lowers, users);
    close(ends[1]);
    if (pid > 0) waitpid(pid, &status, 0);
    long long took = microseconds() - began;
    ssize_t length = pid > 0 ? read(ends[0], said, sizeof said - 1) : 0;
    close(ends[0]);
    said[length > 0 ? length : 0] = 0;
    if (pid < 0 || status != 0) {
        printf("error %s\n", pid < 0 ? strerror(errno) : said);
    } else {
        printf("%lld\n", took);
    }
    fflush(stdout);
}

int main(int count, char **arguments) {
    char line[32];
    int users = -1;
    report = 2;
    if (count < 3) return 2;
    for (int number = 0; fgets(line, sizeof line, stdin); number++) {
        int mapped = line[0] == 'm';
        if (mapped && users < 0) users = user_namespace();
        one(arguments[1], number, count - 2, arguments + 2, mapped ? users : -1);
    }
    return 0;
}
