/* wire: a box's only way out. It carries what programs in the box say to their own loopback to one
 * unix socket, behind which the recorded network answers.
 *
 *   wire --socket PATH
 *
 * Listens on 127.0.0.1 and ::1: TCP 80, 443 (clients that know no proxy), 3128 (those that do) and
 * 53; UDP 53. Each connection gets one of its own to PATH, which starts with a line that says the
 * port: "wire 1 443\n". A datagram is carried as DNS over TCP does it, behind two bytes of length,
 * so that there is one way to be answered.
 *
 * It goes to the background when all ports are bound: who started it knows that they are there.
 * All memory is static, so that the box cannot make it grow; it ends with the box.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST_PAIRS 128
#define MOST_QUERIES 32
#define BLOCK 16384
#define DATAGRAM 4096
#define QUERY_MS 5000
#define BUSY_MS 10
#define MOST_LISTENERS 10
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { USAGE = 2, TAKEN = 3, NOBODY = 4 };

/* One direction of a connection. `over`: no more will come; `told`: and the other side knows. */
struct pipe {
    char data[BLOCK];
    size_t start, held;
    int over, told;
};

struct pair {
    int near, far; /* the program in the box, the unix socket */
    struct pipe out, back;
};

struct query {
    int far, listener;
    struct sockaddr_storage asker;
    socklen_t asker_size;
    unsigned char answer[2 + DATAGRAM];
    size_t held;
    long long until;
};

struct listener {
    int fd, port, datagrams;
};

static struct pair pairs[MOST_PAIRS];
static struct query queries[MOST_QUERIES];
static struct listener listeners[MOST_LISTENERS];
static int listener_count;
static struct sockaddr_un server = {.sun_family = AF_UNIX};

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* A connection to the server that has said which port it is about, or -1 and why in errno. */
static int reach(int port)
{
    char line[32];
    int size = snprintf(line, sizeof line, "wire 1 %d\n", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int why;

    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&server, sizeof server) == 0 &&
        send(fd, line, size, MSG_NOSIGNAL) == size)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

static void drop(struct pair *pair)
{
    close(pair->near);
    close(pair->far);
    pair->near = pair->far = -1;
}

/* So that the program learns at once that nobody is there. */
static void reset(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}

static void move(int from, int to, struct pipe *pipe)
{
    ssize_t moved;

    if (!pipe->held && !pipe->over) {
        moved = recv(from, pipe->data, BLOCK, MSG_DONTWAIT);
        if (moved > 0) {
            pipe->start = 0;
            pipe->held = moved;
        } else if (moved == 0 || !would_block()) {
            pipe->over = 1;
        }
    }
    if (pipe->held) {
        moved = send(to, pipe->data + pipe->start, pipe->held, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved > 0) {
            pipe->start += moved;
            pipe->held -= moved;
        } else if (moved < 0 && !would_block()) {
            pipe->held = 0;
            pipe->over = pipe->told = 1;
        }
    }
    if (pipe->over && !pipe->held && !pipe->told) {
        shutdown(to, SHUT_WR);
        pipe->told = 1;
    }
}

/* 0: the server has no time at the moment. The connection waits in the kernel's queue. */
static int take_connection(const struct listener *listener)
{
    int near, far, on = 1;
    size_t i;

    for (i = 0; i < MOST_PAIRS && pairs[i].near >= 0; i++)
        ;
    if (i == MOST_PAIRS)
        return 1;
    far = reach(listener->port);
    if (far < 0 && would_block())
        return 0;
    near = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (near < 0 || far < 0) {
        if (near >= 0)
            reset(near);
        if (far >= 0)
            close(far);
        return 1;
    }
    /* The server has put together what belongs together: nothing gains by waiting here. */
    setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pairs[i].near = near;
    pairs[i].far = far;
    pairs[i].out.held = pairs[i].back.held = 0;
    pairs[i].out.over = pairs[i].back.over = 0;
    pairs[i].out.told = pairs[i].back.told = 0;
    return 1;
}

static void forget(struct query *query)
{
    close(query->far);
    query->far = -1;
}

/* Nobody is there to ask: said at once, as the server's failure, or a program would wait for long. */
static void fail(int number, const struct query *query, unsigned char *asked, size_t size)
{
    if (size < 12 || asked[2] & 0x80)
        return;
    asked[2] |= 0x80;
    asked[3] = (asked[3] & 0xf0) | 2;
    sendto(listeners[number].fd, asked, size, MSG_DONTWAIT, (struct sockaddr *)&query->asker,
           query->asker_size);
}

static void take_datagram(int number)
{
    unsigned char data[2 + DATAGRAM];
    struct query *query = NULL, fresh = {.listener = number, .asker_size = sizeof fresh.asker};
    ssize_t size;
    size_t i;

    size = recvfrom(listeners[number].fd, data + 2, DATAGRAM, MSG_DONTWAIT,
                    (struct sockaddr *)&fresh.asker, &fresh.asker_size);
    if (size <= 0)
        return;
    for (i = 0; i < MOST_QUERIES; i++)
        if (queries[i].far < 0)
            query = &queries[i];
    if (!query)
        return; /* it will be asked again */
    fresh.far = reach(listeners[number].port);
    if (fresh.far < 0) {
        fail(number, &fresh, data + 2, size);
        return;
    }
    fresh.until = now_ms() + QUERY_MS;
    data[0] = size >> 8;
    data[1] = size & 0xff;
    *query = fresh;
    if (send(query->far, data, size + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != size + 2)
        forget(query);
}

static void answer(struct query *query)
{
    ssize_t size = recv(query->far, query->answer + query->held,
                        sizeof query->answer - query->held, MSG_DONTWAIT);
    size_t wanted;

    if (size < 0 && would_block())
        return;
    if (size > 0)
        query->held += size;
    wanted = query->held < 2 ? 2 : 2 + (query->answer[0] << 8 | query->answer[1]);
    if (size > 0 && query->held < wanted && query->held < sizeof query->answer)
        return;
    if (query->held >= wanted && wanted > 2)
        sendto(listeners[query->listener].fd, query->answer + 2, wanted - 2, MSG_DONTWAIT,
               (struct sockaddr *)&query->asker, query->asker_size);
    forget(query);
}

static short wanted_near(const struct pair *pair)
{
    return (!pair->out.held && !pair->out.over ? POLLIN : 0) | (pair->back.held ? POLLOUT : 0);
}

static short wanted_far(const struct pair *pair)
{
    return (!pair->back.held && !pair->back.over ? POLLIN : 0) | (pair->out.held ? POLLOUT : 0);
}

static void look_at(struct pair *pair, short near, short far)
{
    if (!near && !far)
        return;
    move(pair->near, pair->far, &pair->out);
    move(pair->far, pair->near, &pair->back);
    if ((pair->out.told && pair->back.told) ||
        (pair->back.told && far & (POLLHUP | POLLERR)) || /* it is answered, and nobody listens */
        (!(near & (POLLIN | POLLOUT)) && near & (POLLHUP | POLLERR)))
        drop(pair);
}

static void serve(void)
{
    static struct pollfd polls[MOST_LISTENERS + 2 * MOST_PAIRS + MOST_QUERIES];
    struct pollfd *of_pairs = polls + MOST_LISTENERS;
    struct pollfd *of_queries = of_pairs + 2 * MOST_PAIRS;
    int i, full, waiting, busy = 0;

    for (;;) {
        for (full = 1, i = 0; i < MOST_PAIRS; i++) {
            struct pair *pair = &pairs[i];
            short near = wanted_near(pair), far = wanted_far(pair);

            full = full && pair->near >= 0;
            of_pairs[2 * i] = (struct pollfd){pair->near, near, 0};
            /* A far end that is gone is told again and again: look when it matters. */
            of_pairs[2 * i + 1] = (struct pollfd){far || pair->back.told ? pair->far : -1, far, 0};
        }
        for (waiting = 0, i = 0; i < MOST_QUERIES; i++) {
            of_queries[i] = (struct pollfd){queries[i].far, POLLIN, 0};
            waiting = waiting || queries[i].far >= 0;
        }
        for (i = 0; i < MOST_LISTENERS; i++) {
            int deaf = i >= listener_count || ((full || busy) && !listeners[i].datagrams);
            polls[i] = (struct pollfd){deaf ? -1 : listeners[i].fd, POLLIN, 0};
        }
        if (poll(polls, LENGTH(polls), busy ? BUSY_MS : waiting ? 1000 : -1) < 0)
            continue;
        busy = 0;
        for (i = 0; i < MOST_PAIRS; i++)
            if (pairs[i].near >= 0)
                look_at(&pairs[i], of_pairs[2 * i].revents, of_pairs[2 * i + 1].revents);
        for (i = 0; i < MOST_QUERIES; i++) {
            if (queries[i].far < 0)
                continue;
            if (of_queries[i].revents)
                answer(&queries[i]);
            else if (now_ms() > queries[i].until)
                forget(&queries[i]);
        }
        for (i = 0; i < listener_count; i++) {
            if (!polls[i].revents)
                continue;
            if (listeners[i].datagrams)
                take_datagram(i);
            else if (!take_connection(&listeners[i]))
                busy = 1;
        }
    }
}

/* Bind one port at one address. A kernel without IPv6 has no ::1, and nobody who would miss it. */
static int bind_one(int family, int port, int datagrams)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int kind = (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
    int on = 1, is_six = family == AF_INET6, fd = socket(family, kind, 0), failed;

    if (fd < 0)
        return is_six ? 0 : errno;
    if (is_six)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (!datagrams)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    failed = is_six ? bind(fd, (struct sockaddr *)&six, sizeof six)
                    : bind(fd, (struct sockaddr *)&four, sizeof four);
    if (failed || (!datagrams && listen(fd, 128))) {
        int why = errno;

        close(fd);
        return is_six && (why == EADDRNOTAVAIL || why == EAFNOSUPPORT) ? 0 : why;
    }
    listeners[listener_count++] = (struct listener){fd, port, datagrams};
    return 0;
}

static int bind_all(void)
{
    static const struct { int port, datagrams; } ports[] = {{53, 1}, {53, 0}, {80, 0}, {443, 0}, {3128, 0}};
    static const int families[] = {AF_INET, AF_INET6};
    size_t i, j;
    int why;

    for (i = 0; i < LENGTH(ports); i++)
        for (j = 0; j < LENGTH(families); j++)
            if ((why = bind_one(families[j], ports[i].port, ports[i].datagrams))) {
                fprintf(stderr, "wire: port %d of the loopback (%s, %s): %s\n", ports[i].port,
                        ports[i].datagrams ? "UDP" : "TCP",
                        families[j] == AF_INET ? "IPv4" : "IPv6", strerror(why));
                return TAKEN;
            }
    return 0;
}

static void go_to_background(void)
{
    int nowhere = open("/dev/null", O_RDWR);
    int i;

    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (chdir("/"))
        return;
    for (i = 0; nowhere >= 0 && i < 3; i++)
        dup2(nowhere, i);
    if (nowhere > 2)
        close(nowhere);
}

int main(int count, char **arguments)
{
    int i, probe, why;

    if (count != 3 || strcmp(arguments[1], "--socket") ||
        strlen(arguments[2]) >= sizeof server.sun_path) {
        fprintf(stderr, "usage: wire --socket PATH\n");
        return USAGE;
    }
    strcpy(server.sun_path, arguments[2]);
#ifdef SYS_close_range
    syscall(SYS_close_range, 3, ~0U, 0);
#endif
    for (i = 0; i < MOST_PAIRS; i++)
        pairs[i].near = pairs[i].far = -1;
    for (i = 0; i < MOST_QUERIES; i++)
        queries[i].far = -1;
    if ((probe = reach(0)) < 0) {
        fprintf(stderr, "wire: %s: %s\n", arguments[2], strerror(errno));
        return NOBODY;
    }
    close(probe);
    if ((why = bind_all()))
        return why;
    switch (fork()) {
    case -1:
        perror("wire: fork");
        return NOBODY;
    case 0:
        go_to_background();
        serve();
        return 0;
    default:
        return 0;
    }
}
