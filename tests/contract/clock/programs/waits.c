/* Deadlines: instants of a clock that the kernel itself compares with its own. */
#define _GNU_SOURCE
#include "tell.h"
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define WANTED 0.2
#define REAL in(WANTED, CLOCK_REALTIME)
#define MONOTONIC in(WANTED, CLOCK_MONOTONIC)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none;
static double began;

static void begin(void) { began = monotonic(); }

static void end(const char *what, int found, int wanted) {
    double waited = monotonic() - began;
    if (found != wanted) printf("%s: %s, not %s\n", what, strerror(found), strerror(wanted));
    else printf("waited %.3f %.3f\n", waited, WANTED);
}

static int of(int result) { return result < 0 ? errno : 0; }

static void *hold(void *mutex) {
    pthread_mutex_lock(mutex);
    sleep(20);
    return NULL;
}

static void locks(void) {
    struct timespec t;
    pthread_mutex_t held;
    pthread_mutexattr_t kind;
    pthread_t other;
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setprotocol(&kind, protocol);
        pthread_mutex_init(&held, &kind);
        pthread_create(&other, NULL, hold, &held);
        while (pthread_mutex_trylock(&held) == 0) pthread_mutex_unlock(&held), usleep(1000);
        begin(), t = REAL;
        end("mutex", pthread_mutex_timedlock(&held, &t), ETIMEDOUT);
        pthread_cancel(other);
        pthread_join(other, NULL);
    }
}

static void conditions(void) {
    struct timespec t;
    pthread_cond_t steady;
    pthread_condattr_t kind;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&steady, &kind);
    pthread_mutex_lock(&lock);
    begin(), t = REAL;
    end("condition", pthread_cond_timedwait(&never, &lock, &t), ETIMEDOUT);
    begin(), t = MONOTONIC;
    end("monotonic condition", pthread_cond_timedwait(&steady, &lock, &t), ETIMEDOUT);
    begin(), t = MONOTONIC;
    end("clockwait", pthread_cond_clockwait(&never, &lock, CLOCK_MONOTONIC, &t), ETIMEDOUT);
    begin(), t = REAL;
    end("clockwait", pthread_cond_clockwait(&never, &lock, CLOCK_REALTIME, &t), ETIMEDOUT);
    pthread_mutex_unlock(&lock);
}

static void semaphores(void) {
    struct timespec t;
    sem_init(&none, 0, 0);
    begin(), t = REAL;
    end("semaphore", of(sem_timedwait(&none, &t)), ETIMEDOUT);
    begin(), t = MONOTONIC;
    end("semaphore", of(sem_clockwait(&none, CLOCK_MONOTONIC, &t)), ETIMEDOUT);
    begin(), t = REAL;
    end("semaphore", of(sem_clockwait(&none, CLOCK_REALTIME, &t)), ETIMEDOUT);
}

static void timers(void) {
    struct timespec t;
    begin(), t = REAL;
    end("clock_nanosleep", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL), 0);
    begin();
    struct itimerspec at = {.it_value = REAL};
    uint64_t times;
    int fd = timerfd_create(CLOCK_REALTIME, 0);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
    end("timerfd", read(fd, &times, sizeof times) == sizeof times ? 0 : errno, 0);
    sigset_t set;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    sigemptyset(&set), sigaddset(&set, SIGUSR1), sigprocmask(SIG_BLOCK, &set, NULL);
    timer_create(CLOCK_REALTIME, &event, &timer);
    begin(), at.it_value = REAL;
    timer_settime(timer, TIMER_ABSTIME, &at, NULL);
    end("timer", of(sigwaitinfo(&set, NULL)), 0);
}

static void queues(void) {
    char name[40], message[64];
    struct timespec t;
    struct mq_attr sizes = {.mq_maxmsg = 1, .mq_msgsize = 64};
    snprintf(name, sizeof name, "/zoo-%d", getpid());
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &sizes);
    if (queue == (mqd_t)-1) {
        printf("mq_open: %s\n", strerror(errno));
        return;
    }
    mq_unlink(name);
    begin(), t = REAL;
    end("mq_timedreceive", of((int)mq_timedreceive(queue, message, 64, NULL, &t)), ETIMEDOUT);
    mq_send(queue, "x", 1, 0);
    begin(), t = REAL;
    end("mq_timedsend", of(mq_timedsend(queue, "x", 1, 0, &t)), ETIMEDOUT);
}

int main(int count, char **words) {
    static const struct { const char *name; void (*does)(void); } all[] = {
        {"locks", locks}, {"conditions", conditions}, {"semaphores", semaphores},
        {"timers", timers}, {"queues", queues},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (count > 1 && strcmp(words[1], all[i].name) == 0) all[i].does();
    return 0;
}
