/* Absolute deadlines on the wall clock. The kernel compares them with the real clock, so they are
 * moved to the real axis in the caller's memory and the call goes on: a wait takes as long as the
 * caller meant it to, also by a clock that stands. */
#include "still.h"
#include <string.h>
#include <sys/syscall.h>

static void thaw(pid_t tid, uint64_t address) {
    int64_t deadline[2];
    if (address && !peek(tid, address, deadline, sizeof deadline) && thaw_deadline(deadline, deadline + 1))
        poke(tid, address, deadline, sizeof deadline);
}

/* Only the wall clocks' timers: the others' deadlines are on an axis that was left alone. */
static int timer_on_wall(pid_t tid, int nr, int id, uint64_t value_at) {
    char text[2048], label[48];
    if (nr == SYS_timerfd_settime) {
        put_number(put_text(label, "fdinfo/"), id);
        int n = read_proc(tid, label, text, sizeof text - 1);
        if (n <= 0) return 0;
        text[n] = 0;
        long clock = proc_number(text, "clockid:", 10, 1);
        return clock == 0 || clock == 8;
    }
    int n = read_proc(tid, "timers", text, sizeof text - 1);
    if (n > 0) {
        text[n] = 0;
        put_text(put_number(put_text(label, "ID: "), id), "\n");
        const char *timer = strstr(text, label);
        if (timer) {
            long clock = proc_number(timer, "ClockID: ", 10, 1);
            return clock == 0 || clock == 8 || clock == 11;
        }
    }
    /* A kernel that does not list them, or too many: nearer to the machine's uptime is monotonic. */
    int64_t deadline[2];
    if (peek(tid, value_at, deadline, sizeof deadline)) return 0;
    int64_t frozen = frozen_peek() / NANO, mono = clock_mono() / NANO;
    int64_t wall = deadline[0] > frozen ? deadline[0] - frozen : frozen - deadline[0];
    int64_t up = deadline[0] > mono ? deadline[0] - mono : mono - deadline[0];
    return wall < up;
}

void answer_wait(const struct seccomp_notif *asked) {
    const uint64_t *a = asked->data.args;
    pid_t tid = (pid_t)asked->pid;
    switch (asked->data.nr) {
    case SYS_futex: thaw(tid, a[3]); break;
    case NR_futex_waitv: thaw(tid, a[3]); break;
    case NR_futex_wait: thaw(tid, a[4]); break;
    case SYS_clock_nanosleep: thaw(tid, a[2]); break;
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive: thaw(tid, a[4]); break;
    default: /* struct itimerspec: the interval, then the value; a value of zero disarms */
        if (a[2] && timer_on_wall(tid, asked->data.nr, (int)a[0], a[2] + 16)) {
            int64_t value[2];
            if (!peek(tid, a[2] + 16, value, sizeof value) && (value[0] || value[1])) thaw(tid, a[2] + 16);
        }
    }
}
