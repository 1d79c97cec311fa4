/* The supervisor's threads: one for each listener. Receiving may block although poll() said that
 * there is something (the asker may die in between), and one that blocks must not hold up another. */
#define _GNU_SOURCE
#include "still.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define STACK (128 * 1024)

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static int listeners;

void shared_lock(void) { pthread_mutex_lock(&shared); }
void shared_unlock(void) { pthread_mutex_unlock(&shared); }

void give_up(const char *why) {
    say("the supervisor cannot go on: ", why, errno);
    _exit(CANNOT_START);
}

union room { /* a newer kernel's structs may be longer than those we know */
    struct seccomp_notif asked;
    struct seccomp_notif_resp answer;
    uint8_t bytes[512];
};

/* 0, or -1 when there was nothing to receive. */
static int answer_next(int listener) {
    union room in, out;
    struct answer answer;
    memset(&in, 0, sizeof in); /* the kernel insists */
    memset(&out, 0, sizeof out);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in)) {
        if (errno == ENOENT || errno == EINTR || errno == EAGAIN) return -1;
        give_up("receiving");
    }
    shared_lock(); /* a thread's own ids change while it looks at files; the rest is tables */
    answer_one(listener, &in.asked, &answer);
    shared_unlock();
    out.answer.id = in.asked.id;
    out.answer.val = answer.value;
    out.answer.error = answer.error;
    out.answer.flags = answer.goes_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out) && errno != ENOENT && errno != EINPROGRESS)
        give_up("answering");
    return 0;
}

/* Since 6.11 receiving ends when the last program with the filter has; before, only poll() tells. */
static int receiving_ends(void) {
    struct utsname kernel;
    if (uname(&kernel)) return 0;
    char *rest;
    long major = strtol(kernel.release, &rest, 10);
    long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    return major > 6 || (major == 6 && minor >= 11);
}

static int somebody_asks(int listener) {
    struct pollfd readable = {listener, POLLIN, 0};
    for (;;) {
        int n = poll(&readable, 1, -1);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) give_up("waiting");
        return readable.revents & POLLIN;
    }
}

static void answer_all(int listener) {
    int ends = receiving_ends();
    while (somebody_asks(listener))
        do {
        } while (answer_next(listener) == 0 && ends);
    close(listener);
    __atomic_fetch_sub(&listeners, 1, __ATOMIC_RELAXED);
}

/* One thread waits for the next listener: in a box that is full of processes none can be started, and
 * a program that comes from outside has to be served there, too. */
static pthread_mutex_t seat = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t seated = PTHREAD_COND_INITIALIZER;
static int somebody_waits, next_listener = -1;

static int give_to_who_waits(int listener) {
    pthread_mutex_lock(&seat);
    int given = somebody_waits && next_listener < 0;
    if (given) next_listener = listener, pthread_cond_signal(&seated);
    pthread_mutex_unlock(&seat);
    return given;
}

/* The next listener; -1 when another thread waits for it already. */
static int wait_for_next(void) {
    int listener = -1;
    pthread_mutex_lock(&seat);
    if (!somebody_waits) {
        somebody_waits = 1;
        while (next_listener < 0) pthread_cond_wait(&seated, &seat);
        listener = next_listener;
        somebody_waits = 0, next_listener = -1;
    }
    pthread_mutex_unlock(&seat);
    return listener;
}

static void *serving(void *argument) {
    int listener = (int)(intptr_t)argument;
    if (listener >= 0) answer_all(listener);
    while ((listener = wait_for_next()) >= 0) {
        keep_one_waiting();
        answer_all(listener);
    }
    return NULL;
}

/* If there is room for it; else whoever is done next waits. */
int keep_one_waiting(void) { return start_thread(serving, (void *)(intptr_t)-1); }

int serve_room(void) { return __atomic_load_n(&listeners, __ATOMIC_RELAXED) < MAX_LISTENERS; }

static int structs_fit(void) {
    struct seccomp_notif_sizes sizes;
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes)) return -errno;
    return sizes.seccomp_notif <= sizeof(union room) && sizes.seccomp_notif_resp <= sizeof(union room)
               ? 0
               : -ENOTSUP;
}

int start_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes)) return -ENOMEM;
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* signals are the program's, whose process this may be */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -error;
}

int serve(int listener) {
    int error = structs_fit();
    if (error) return error;
    /* Asker and supervisor take turns: the kernel may run them on one processor. Linux 6.6. */
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    __atomic_fetch_add(&listeners, 1, __ATOMIC_RELAXED);
    if (!give_to_who_waits(listener)) error = start_thread(serving, (void *)(intptr_t)listener);
    if (error) __atomic_fetch_sub(&listeners, 1, __ATOMIC_RELAXED);
    return error;
}

/* For a caller that is about to be frozen itself: a thread it starts afterwards would be, too. */
static sem_t handed;
static int handed_listener;

static void *serving_later(void *argument) {
    (void)argument;
    while (sem_wait(&handed)) continue;
    int error = handed_listener < 0 ? 0 : serve(handed_listener);
    if (error) errno = -error, give_up("starting");
    return NULL;
}

int serve_later(void) {
    int error = structs_fit();
    if (error) return error;
    sem_init(&handed, 0, 0);
    return start_thread(serving_later, NULL);
}

void serve_now(int listener) {
    handed_listener = listener;
    sem_post(&handed);
}
