/* How a freeze starts, in the thread whose descendants are to be frozen. */
#include "still.h"
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int has_capability(int number) {
    struct cap_header head = {CAP_VERSION_3, 0};
    struct cap_data data[2] = {{0}, {0}};
    return !syscall(SYS_capget, &head, data) && (data[number / 32].effective >> (number % 32) & 1);
}

static void drop(int number) {
    struct cap_header head = {CAP_VERSION_3, 0};
    struct cap_data data[2] = {{0}, {0}};
    if (syscall(SYS_capget, &head, data)) return;
    uint32_t keep = ~(1U << (number % 32));
    data[number / 32].effective &= keep;
    data[number / 32].permitted &= keep;
    data[number / 32].inheritable &= keep;
    syscall(SYS_capset, &head, data);
}

void learn_rights(void) { settings.blind = !has_capability(CAP_SYS_PTRACE); }

/* With the first a program could write into the supervisor; with the second, bring the first back.
 * Both leave the bounding set while the second still allows that. */
void drop_capabilities(void) {
    if (has_capability(CAP_SETPCAP)) {
        prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0);
        prctl(PR_CAPBSET_DROP, CAP_SETPCAP, 0, 0, 0);
    }
    drop(CAP_SYS_PTRACE);
    drop(CAP_SETPCAP);
}

void be_not_dumpable(void) {
    if (!settings.dumpable) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int become_frozen(int *listener) {
    /* Without the right, the kernel wants the promise that no exec will gain any. */
    if (!has_capability(CAP_SYS_ADMIN) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -errno;
    if (settings.aslr_off && syscall(SYS_personality, ADDR_NO_RANDOMIZE) < 0) return -errno;
    int fd = filter_install();
    if (fd < 0) return fd;
    *listener = fd;
    return 0;
}
