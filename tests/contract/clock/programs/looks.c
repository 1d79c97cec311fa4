/* A file's times, asked for again and again in every way, by threads that are interrupted: whatever
 * makes that quick, the answer stays what it was at first, and what fails, fails as it should. */
#define _GNU_SOURCE
#include "tell.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
#define TIMES 1500
#define WAYS 7

static char name[] = "looksXXXXXX", gone[] = "no such file";
static int fd;

static long extended(struct stat *found) {
#ifdef STATX_BASIC_STATS
    struct statx more = {0};
    long result = statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &more);
    found->st_mtim.tv_sec = more.stx_mtime.tv_sec, found->st_mtim.tv_nsec = more.stx_mtime.tv_nsec;
    found->st_size = (off_t)more.stx_size;
    return result;
#else /* an older musl */
    return stat(name, found);
#endif
}

static long ask(int way, struct timespec *at) {
    struct stat found = {0};
    long result;
    switch (way) {
    case 0: result = stat(name, &found); break;
    case 1: result = lstat(name, &found); break;
    case 2: result = fstat(fd, &found); break;
    case 3: result = fstatat(AT_FDCWD, name, &found, AT_SYMLINK_NOFOLLOW); break;
    case 4: result = fstatat(fd, "", &found, AT_EMPTY_PATH); break;
    case 5: result = syscall(SYS_newfstatat, AT_FDCWD, name, &found, 0); break;
    default:
        result = extended(&found);
    }
    if (result == 0 && found.st_size != 5) puts("another size");
    *at = found.st_mtim;
    return result;
}

static void *look(void *none) {
    struct stat found;
    struct timespec first[WAYS], at;
    for (int i = 0; i < TIMES; i++)
        for (int way = 0; way < WAYS; way++) {
            if (ask(way, &at)) printf("way %d fails: %s\n", way, strerror(errno));
            if (i == 0) first[way] = at;
            if (memcmp(&first[way], &at, sizeof at)) printf("way %d at %d", way, i), tell("", &at);
        }
    for (int i = 0; i < 20; i++) {
        errno = 0;
        if (stat(gone, &found) != -1 || errno != ENOENT) puts("what is not there is found");
        if (fstat(-1, &found) != -1 || errno != EBADF) puts("no descriptor is one");
        if (syscall(SYS_newfstatat, AT_FDCWD, name, NULL, 0) != -1 || errno != EFAULT)
            puts("nowhere is somewhere");
    }
    for (int way = 0; way < WAYS; way++)
        if (memcmp(&first[0], &first[way], sizeof at)) printf("way %d is another\n", way);
    return none;
}

/* The answer ends where the page does. */
static void at_the_edge(void) {
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(two + 4096, 4096);
    struct stat *found = (void *)(two + 4096 - sizeof *found);
    for (int i = 0; i < 20; i++)
        if (stat(name, found)) puts("not at the edge of a page");
    tell("file", &found->st_mtim);
}

static void nothing(int number) { (void)number; }

int main(void) {
    pthread_t made[THREADS];
    struct timespec at;
    struct sigaction act = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    struct itimerval each = {{0, 1000}, {0, 1000}};
    fd = mkstemp(name);
    if (fd < 0 || write(fd, "12345", 5) != 5) return 1;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    for (int i = 0; i < THREADS; i++) pthread_create(&made[i], NULL, look, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(made[i], NULL);
    ask(0, &at), tell("file", &at);
    at_the_edge();
    /* What somebody sets is told as it was set. */
    struct timespec set[2] = {{1000000000, 5}, {1000000000, 5}};
    futimens(fd, set);
    ask(0, &at);
    if (at.tv_sec != 1000000000 || at.tv_nsec != 5) tell("set, and found", &at);
    unlink(name);
    return 0;
}
