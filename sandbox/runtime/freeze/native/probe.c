/* What a static program sees here, in numbers: times in nanoseconds, errors as errno (0: it went
 * through), -1 for what could not be learned. Whether that is right is judged by who asked.
 *
 * It is run where nothing is frozen, too, so nothing here may harm: a clock is set to an impossible
 * instant only, and nobody is connected to whom there is a way. */
#define _GNU_SOURCE
#include "still.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int said;
static void tell(const char *name, long long value) {
    printf("%s\"%s\": %lld", said++ ? ", " : "{", name, value);
}

static long long nanos(const struct timespec *t) { return (long long)t->tv_sec * NANO + t->tv_nsec; }
static long long micros(const struct timeval *t) {
    return (long long)t->tv_sec * NANO + (long long)t->tv_usec * 1000;
}
static long error_of(long result) { return result < 0 ? errno : 0; }

static long long by_libc(clockid_t clock) {
    struct timespec t = {0, 0};
    return clock_gettime(clock, &t) ? -1 : nanos(&t);
}
static long long by_call(int clock) {
    struct timespec t = {0, 0};
    return syscall(SYS_clock_gettime, clock, &t) ? -1 : nanos(&t);
}
static long long milliseconds_since(long long start) { return (by_call(CLOCK_MONOTONIC) - start) / 1000000; }

/* The same program with nothing in its environment. */
static long long child_sees(void) {
    int ends[2];
    char text[64] = "", *words[] = {"still", "probe", "--now", NULL}, *nothing[] = {NULL};
    if (pipe2(ends, O_CLOEXEC)) return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        execve("/proc/self/exe", words, nothing);
        _exit(127);
    }
    close(ends[1]);
    ssize_t n = child < 0 ? -1 : read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return n > 0 ? atoll(text) : -1;
}

static void clocks(void) {
    struct timeval t = {0, 0};
    tell("clock_gettime", by_libc(CLOCK_REALTIME));
    tell("gettimeofday", gettimeofday(&t, NULL) ? -1 : micros(&t));
    tell("time", (long long)time(NULL) * NANO);
    tell("coarse", by_libc(5));
    tell("tai", by_libc(11));
    tell("raw_clock_gettime", by_call(CLOCK_REALTIME));
    tell("raw_coarse", by_call(5));
    tell("raw_tai", by_call(11));
    tell("raw_gettimeofday", syscall(SYS_gettimeofday, &t, NULL) ? -1 : micros(&t));
#ifdef SYS_time
    tell("raw_time", (long long)syscall(SYS_time, NULL) * NANO);
#endif
    tell("child", child_sees());
    struct timespec impossible = {0, -1};
    struct timeval impossible_too = {0, -1};
    struct timex only_read = {0};
    tell("clock_settime", error_of(syscall(SYS_clock_settime, CLOCK_REALTIME, &impossible)));
    tell("settimeofday", error_of(syscall(SYS_settimeofday, &impossible_too, NULL)));
    tell("adjtimex", error_of(syscall(SYS_adjtimex, &only_read)));
}

static void waits(void) {
    long long start = by_call(CLOCK_MONOTONIC);
    struct timespec pause = {0, 50000000}, until;
    while (nanosleep(&pause, &pause) && errno == EINTR) continue;
    tell("sleep_ms", milliseconds_since(start));
    sem_t never;
    sem_init(&never, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 60000000;
    if (until.tv_nsec >= NANO) until.tv_nsec -= NANO, until.tv_sec++;
    start = by_call(CLOCK_MONOTONIC);
    alarm(5); /* a deadline years away ends the probe, not the patience of who waits for it */
    while (sem_timedwait(&never, &until) && errno == EINTR) continue;
    alarm(0);
    tell("wait_ms", milliseconds_since(start));
}

static int fresh_file(char *name) {
    static const char *const folders[] = {".", "/tmp", "/var/tmp", "/dev/shm"};
    for (int i = 0; i < 4; i++) {
        sprintf(name, "%s/.still-XXXXXX", folders[i]);
        int fd = mkstemp(name);
        if (fd >= 0) return fd;
    }
    return -1;
}

static void files(void) {
    char name[64];
    struct stat found = {0};
    int fd = fresh_file(name);
    tell("mtime", fd < 0 || fstat(fd, &found) ? -1 : nanos(&found.st_mtim));
    tell("after_mtime", by_libc(CLOCK_REALTIME));
    struct timespec chosen[2] = {{1000000000, 0}, {1000000000, 0}};
    if (fd >= 0) futimens(fd, chosen);
    tell("utimes", fd < 0 || stat(name, &found) ? -1 : nanos(&found.st_mtim));
    if (fd >= 0) {
        unlink(name);
        close(fd);
    }
}

static int interfaces(void) {
    char line[512];
    int count = 0;
    FILE *table = fopen("/proc/net/dev", "re");
    if (!table) return -1;
    while (fgets(line, sizeof line, table))
        if (strchr(line, ':') && strncmp(line + strspn(line, " "), "lo:", 3)) count++;
    fclose(table);
    return count;
}

static long reaches(int family, int type) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(443)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    inet_pton(AF_INET, "192.0.2.1", &four.sin_addr); /* addresses that belong to nobody */
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    long error = error_of(family == AF_INET ? connect(fd, (struct sockaddr *)&four, sizeof four)
                                            : connect(fd, (struct sockaddr *)&six, sizeof six));
    close(fd);
    return error;
}

static long opens(int family, int type, int protocol) {
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    long error = error_of(fd);
    if (fd >= 0) close(fd);
    return error;
}

static void network(void) {
    tell("interfaces", interfaces());
    /* Connecting UDP sends nothing: it only asks for a way. Where there is one TCP is not tried. */
    long udp = reaches(AF_INET, SOCK_DGRAM), udp6 = reaches(AF_INET6, SOCK_DGRAM);
    tell("udp", udp);
    tell("tcp", udp ? reaches(AF_INET, SOCK_STREAM) : 0);
    tell("udp6", udp6);
    tell("tcp6", udp6 ? reaches(AF_INET6, SOCK_STREAM) : 0);
    tell("vsock", opens(40, SOCK_STREAM, 0));
    tell("alg", opens(38, SOCK_SEQPACKET, 0));
    tell("packet", opens(17, SOCK_RAW, 0));
    tell("raw", opens(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static void process(void) {
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    tell("seccomp_filters", proc_number(text, "\nSeccomp_filters:\t", 10, -1));
    mode_t mask = umask(0);
    umask(mask);
    tell("umask", mask);
    cpu_set_t allowed;
    tell("cpus", sched_getaffinity(0, sizeof allowed, &allowed) ? -1 : CPU_COUNT(&allowed));
}

int probe(int count, char **words) {
    if (count == 1 && !strcmp(words[0], "--now")) {
        printf("%lld\n", by_libc(CLOCK_REALTIME));
        return 0;
    }
    if (count < 2) {
        say("usage: still probe AT_NS SLACK_NS [MODE]", "", 0);
        return CANNOT_START;
    }
    tell("at", atoll(words[0]));
    tell("slack", atoll(words[1]));
    clocks();
    waits();
    files();
    network();
    process();
    printf(", \"mode\": \"%s\"}\n", count > 2 && strlen(words[2]) < 16 ? words[2] : "");
    return fflush(stdout) ? 1 : 0;
}
