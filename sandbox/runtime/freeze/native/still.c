/* still: the supervisor as a program.
 *
 *   still init OPTIONS -- argv…   as process 1 of a box; argv becomes process 2
 *   still run OPTIONS -- argv…    the same from any process
 *   still join [--mark WORD] -- argv…   under the supervisor that is there already
 *   still probe AT SLACK [MODE]   what a static program sees here, as one line of JSON */
#define _GNU_SOURCE
#include "still.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Printed before why a program was never started, as --mark says: a program could print the reason,
 * but not what was on a command line that its own has replaced. */
static const char *mark = "";

static int fail(const char *what, long error) {
    say(mark, what, error);
    return CANNOT_START;
}

static int usage(const char *wrong, const char *word) {
    say(wrong, word, 0);
    say("usage: still init|run --at NS [--mode ticking|fixed|step] [--step NS] [--mono0 NS] ",
        "[--real0 NS] [--since NS] [--seed N] [--no-aslr] [--guard] -- argv..., or still join [--mark WORD] -- argv...", 0);
    return CANNOT_START;
}

static int options(char **words, char ***program) {
    for (; *words && strcmp(*words, "--"); words++) {
        if (!strcmp(*words, "--guard")) settings.guard = 1;
        else if (!strcmp(*words, "--no-aslr")) settings.aslr_off = 1;
        else if (!strcmp(*words, "--mark") && words[1]) mark = *++words;
        else if (strncmp(*words, "--", 2) || !words[1] || setting(*words + 2, words[1]))
            return usage("not an option, or not its value: ", *words);
        else words++;
    }
    if (!*words || !words[1]) return usage("no program: ", "it stands behind --");
    *program = words + 1;
    return 0;
}

static int execute(char **program) {
    execvp(program[0], program);
    int error = errno;
    say(mark, program[0], error);
    return error == ENOENT ? 127 : 126;
}

static int child(int socket, char **program) {
    int listener = -1;
    /* In a box process 1's end is everybody's; outside, this is as near as one gets. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (settings.guard) settings.guarded = (int32_t)getpid();
    drop_capabilities(); /* now: afterwards the supervisor would take it for a program's doing */
    int error = become_frozen(&listener);
    if (error) return fail("cannot freeze", error);
    char byte;
    if (send_listener(socket, listener)) return fail("cannot hand the listener over", errno);
    close(listener);
    if (recv(socket, &byte, 1, 0) != 1) return CANNOT_START;
    close(socket);
    return execute(program);
}

static int reap_until(pid_t last) {
    for (;;) {
        int status;
        pid_t ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno == EINTR) continue;
        if (ended < 0) return fail("cannot wait", errno);
        if (ended == last) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static int supervise(char **program, int with_door) {
    int pair[2], error = settings_complete();
    if (error) return usage("--at is missing, or a number is out of range", "");
    if ((error = vdso_prepare(&vdso))) return fail("cannot rewrite this kernel's vDSO", error);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return fail("socketpair", errno);
    pid_t first = fork();
    if (first < 0) return fail("cannot fork", errno);
    if (first == 0) {
        close(pair[0]);
        _exit(child(pair[1], program));
    }
    close(pair[1]);
    if (settings.guard) settings.guarded = (int32_t)first;
    creds_remember_own();
    be_not_dumpable();
    int listener = receive_listener(pair[0]);
    if (listener < 0) return reap_until(first);
    if ((error = serve(listener))) return fail("cannot serve", error);
    if (with_door && (error = door_open())) return fail("cannot bind the door", error);
    if (send(pair[0], "", 1, MSG_NOSIGNAL) != 1) return reap_until(first);
    close(pair[0]);
    return reap_until(first);
}

static int join(char **program) {
    struct settings told;
    int listener = -1, door = door_connect(&told);
    if (door < 0) return fail("no supervisor is here to join", door);
    settings = told;
    drop_capabilities();
    int error = become_frozen(&listener);
    if (!error) error = door_hand_over(door, listener);
    if (error) return fail("cannot join", error);
    close(listener);
    close(door);
    return execute(program);
}

int main(int count, char **words) {
    char **program = NULL;
    if (count < 2) return usage("no verb", "");
    if (!strcmp(words[1], "probe")) return probe(count - 2, words + 2);
    int init = !strcmp(words[1], "init"), joins = !strcmp(words[1], "join");
    if (!init && !joins && strcmp(words[1], "run")) return usage("no such verb: ", words[1]);
    int error = options(words + 2, &program);
    if (error) return error;
    if (joins) return join(program);
    return supervise(program, init);
}
