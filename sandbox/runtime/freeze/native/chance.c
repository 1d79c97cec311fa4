/* Seeded randomness: each process draws from a stream of its own, keyed by the seed, by its command
 * line and by how many with the same command line came before it. */
#include "still.h"
#include <errno.h>

#define STREAMS 4096
static struct {
    pid_t group;
    uint64_t state;
} streams[STREAMS];
static struct {
    uint64_t command;
    uint32_t count;
} commands[STREAMS];

static uint64_t draw(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static uint64_t fresh_state(pid_t tid) {
    uint8_t line[4096];
    int n = read_proc(tid, "cmdline", line, sizeof line);
    uint64_t hash = 1469598103934665603ULL ^ settings.seed; /* FNV-1a */
    for (int i = 0; i < n; i++) hash = (hash ^ line[i]) * 1099511628211ULL;
    uint32_t slot = (uint32_t)(hash % STREAMS);
    if (commands[slot].command != hash) commands[slot].command = hash, commands[slot].count = 0;
    /* Mixed, and not by the constant of a draw: the next one would draw what this one did, by one on. */
    uint64_t key = hash ^ ++commands[slot].count * 0xd6e8feb86659fd93ULL;
    return draw(&key);
}

static uint64_t *stream_of(pid_t tid, int starts) {
    pid_t group = group_of(tid);
    uint32_t slot = (uint32_t)group % STREAMS;
    if (starts || streams[slot].group != group) {
        streams[slot].group = group;
        streams[slot].state = fresh_state(tid);
    }
    return &streams[slot].state;
}

void random_begin(pid_t tid, uint8_t bytes[16]) {
    uint64_t *state = stream_of(tid, 1);
    for (int i = 0; i < 2; i++) {
        uint64_t word = draw(state);
        __builtin_memcpy(bytes + 8 * i, &word, 8);
    }
}

void answer_random(const struct seccomp_notif *asked, struct answer *answer) {
    uint64_t words[512], size = asked->data.args[1];
    if (size > sizeof words) size = sizeof words; /* callers loop: getrandom may give less */
    uint64_t *state = stream_of((pid_t)asked->pid, 0);
    for (uint64_t i = 0; i < (size + 7) / 8; i++) words[i] = draw(state);
    if (size && poke((pid_t)asked->pid, asked->data.args[0], words, size)) answer->error = -EFAULT;
    else answer->value = (int64_t)size;
}
