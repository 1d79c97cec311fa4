/* How a program started from outside (by the container engine, or into the box's namespaces) comes
 * under the box's supervisor: through an abstract socket, which is where the network namespace is,
 * and needs no file. It is told the settings, installs the same filter, and hands its listener over.
 *
 * A box's program that knocks gains nothing: it has a listener above it already, so the kernel gives
 * it no second one, and whatever else it hands over is closed. Nor does it keep others out: it gives
 * way to whoever comes. */
#define _GNU_SOURCE
#include "still.h"
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define WAITING 16
#define PATIENCE (2 * NANO)

static socklen_t door_name(struct sockaddr_un *name) {
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path + 1, DOOR_NAME, sizeof DOOR_NAME - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof DOOR_NAME);
}

int send_listener(int socket, int listener) {
    char byte = 0, room[CMSG_SPACE(sizeof listener)] __attribute__((aligned(8))) = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {0};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = room, message.msg_controllen = sizeof room;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof listener);
    memcpy(CMSG_DATA(head), &listener, sizeof listener);
    ssize_t n;
    do n = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -1;
}

static int is_listener(int fd) {
    char path[40], link[64];
    put_number(put_text(path, "/proc/self/fd/"), fd);
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n < 0) return 0;
    link[n] = 0;
    return !strcmp(link, "anon_inode:seccomp notify");
}

int receive_listener(int socket) {
    char byte, room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    struct iovec part = {&byte, 1};
    struct msghdr message = {0};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = room, message.msg_controllen = sizeof room;
    ssize_t n;
    do n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *head = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int))) return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    if (is_listener(fd)) return fd;
    close(fd);
    return -1;
}

struct guest {
    int socket;
    int64_t until;
    int frozen;
};

/* -1: a kernel that does not say (before Linux 5.9), or there is none. */
static long filters_of(pid_t tid) {
    char text[4096];
    int n = read_proc(tid, "status", text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return proc_number(text, "\nSeccomp_filters:\t", 10, -1);
}

/* Whether it is one of the box's programs: it has all of our filters, and ours on top. One from
 * outside has as many as we, and is told apart by nothing if it has more. */
static int is_frozen(int socket) {
    static long ours;
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return 1;
    if (peer.pid <= 0) return 0; /* of a namespace that is not below ours */
    shared_lock();
    if (!ours) ours = filters_of((pid_t)syscall(SYS_gettid)) + 1;
    long theirs = filters_of(peer.pid) + 1;
    shared_unlock();
    return ours && (!theirs || theirs > ours);
}

/* Where the next guest goes; -1: a full room takes nobody in for now. */
static int place_for_one(const struct guest *guests, int count) {
    if (count < WAITING) return count;
    for (int i = 0; i < count; i++)
        if (guests[i].frozen) return i;
    return -1;
}

/* One more in the room, or none. Returns how many there are. */
static int receive_guest(int door, const struct settings *told, struct guest *guests, int count) {
    int socket = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int place = place_for_one(guests, count);
    if (socket < 0 || place < 0 || send(socket, told, sizeof *told, MSG_NOSIGNAL) != (ssize_t)sizeof *told) {
        if (socket >= 0) close(socket);
        return count;
    }
    if (place < count) close(guests[place].socket);
    guests[place] = (struct guest){socket, clock_mono() + PATIENCE, is_frozen(socket)};
    return place < count ? count : count + 1;
}

static void let_in(int socket) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    int listener = receive_listener(socket);
    if (listener < 0) return;
    shared_lock();
    /* Who it is we do not know: from now on each one is looked at. */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != geteuid()) creds_changed();
    shared_unlock();
    if (!serve_room() || serve(listener)) {
        close(listener); /* the guest's next asked-about call fails: it cannot go on unfrozen */
        return;
    }
    if (send(socket, "", 1, MSG_NOSIGNAL) < 0) return;
}

static void *doorkeeper(void *argument) {
    int door = (int)(intptr_t)argument;
    struct guest guests[WAITING];
    int count = 0;
    struct settings told = settings; /* what a filter is made of; the real time is nobody's to know */
    told.at = told.mono0 = told.real0 = told.since = 0, told.seed = 0;
    for (;;) {
        struct pollfd ready[WAITING + 1];
        /* A negative descriptor is passed over. */
        ready[0] = (struct pollfd){place_for_one(guests, count) < 0 ? -1 : door, POLLIN, 0};
        for (int i = 0; i < count; i++) ready[i + 1] = (struct pollfd){guests[i].socket, POLLIN, 0};
        int n = poll(ready, (nfds_t)count + 1, count ? 500 : -1);
        if (n < 0 && errno != EINTR) give_up("at the door");
        if (n < 0) continue;
        int64_t now = clock_mono();
        for (int i = count - 1; i >= 0; i--) {
            if (ready[i + 1].revents) let_in(guests[i].socket);
            else if (now < guests[i].until) continue;
            close(guests[i].socket);
            guests[i] = guests[--count];
        }
        if (ready[0].revents & POLLIN) count = receive_guest(door, &told, guests, count);
    }
    return NULL;
}

int door_open(void) {
    struct sockaddr_un name;
    socklen_t size = door_name(&name);
    int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (door < 0) return -errno;
    if (bind(door, (struct sockaddr *)&name, size) || listen(door, WAITING)) {
        int error = -errno;
        close(door);
        return error;
    }
    int error = start_thread(doorkeeper, (void *)(intptr_t)door);
    if (error) close(door);
    return error;
}

int door_connect(struct settings *told) {
    struct sockaddr_un name;
    socklen_t size = door_name(&name);
    int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (door < 0) return -errno;
    ssize_t n = -1;
    if (!connect(door, (struct sockaddr *)&name, size)) n = recv(door, told, sizeof *told, 0);
    if (n == (ssize_t)sizeof *told && told->version == SETTINGS_VERSION) return door;
    int error = n >= 0 ? -EPROTO : -errno;
    close(door);
    return error;
}

int door_hand_over(int door, int listener) {
    char byte;
    ssize_t n = -1;
    if (send_listener(door, listener) == 0)
        do n = recv(door, &byte, 1, 0);
        while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -ECONNREFUSED;
}
