"""Ending what a command has started, from inside its box and by process id."""

from collections.abc import Callable

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box
from sandbox.runtime.terminal.follow import Came, Follower
from sandbox.runtime.terminal.shell import Shell

_STEPS = (("INT", 0.5), ("INT", 0.5), ("TERM", 1.0), ("KILL", 2.0), ("SHELL", 2.0))
"""What is sent, and for how long it is waited; the first is typed."""
_SETTLE_SECONDS = 0.02
"""When ^C has ended it, bash ends the terminal's line, which may come later than its report."""
_WHATEVER = 1 << 62
_SECONDS = 30.0
SCRIPT = r"""
shell=$1 signal=$2 scope=$3; shift 3
all=
for place in /proc/[0-9]*; do
    { read -r line < "$place/stat"; } 2>/dev/null || continue
    rest=${line##*) }
    set -f; old=$*; set -- $rest
    case $scope in session) of=$4 ;; *) of=$3 ;; esac
    all="$all ${place#/proc/}:$2:$of"
    [ "${place#/proc/}" = "$shell" ] && case $scope in session) group=$4 ;; *) group=$6 ;; esac
    set -- $old; set +f
done
targets=
[ "${group:-0}" -gt 0 ] && for one in $all; do
    pid=${one%%:*}
    [ "${one##*:}" = "$group" ] && [ "$pid" != "$shell" ] && targets="$targets $pid"
done
grown=yes
while [ "$grown" ]; do
    grown=
    for one in $all; do
        pid=${one%%:*} parent=${one#*:} parent=${parent%:*}
        case " $targets " in *" $pid "*) continue ;; esac
        case " $targets " in *" $parent "*) targets="$targets $pid" grown=yes ;; esac
    done
done
case $signal in
    LIST) ;;
    SHELL) targets="$targets $shell"
        for pid in $targets "$@"; do kill -s KILL "$pid" 2>/dev/null; done ;;
    LEFT) targets=; for pid in "$@"; do kill -s KILL "$pid" 2>/dev/null && targets="$targets $pid"; done ;;
    *) for pid in $targets "$@"; do kill -s "$signal" "$pid" 2>/dev/null; done ;;
esac
echo "$targets"
"""


def interrupt(
    box: Box, shell: Shell, follower: Follower, clock: Callable[[], float]
) -> tuple[Came, tuple[str, ...]]:
    """End what runs in the foreground, gently first, with all that it has started.

    Returns the command's end or the shell's death, and what was sent.
    """
    family = signalled(box, shell.pid, "LIST")
    sent: list[str] = []
    came = Came.TIME
    for name, seconds in _STEPS:
        if not sent:
            shell.type(b"\x03", seconds)
        elif name == "SHELL":
            if not signalled(box, shell.pid, name, family):
                box.kill_all()
        else:
            family += signalled(box, shell.pid, name, family)
        sent.append(name)
        came = follower.follow(clock() + seconds, "exit", enough=_WHATEVER)
        if came in (Came.END, Came.DEATH):
            break
    shell.read_rest(_SETTLE_SECONDS)
    if family and signalled(box, shell.pid, "LEFT", family) and "KILL" not in sent:
        sent.append("KILL")
    return (came if came is Came.END else Came.DEATH), tuple(sent)


def signalled(
    box: Box, shell: int, signal: str, pids: tuple[str, ...] = (), *, scope: str = "foreground"
) -> tuple[str, ...]:
    """Signal the foreground processes of the shell's terminal, all that they started, and `pids`.

    `scope`: or all processes of its `session`, but never the shell itself.

    Returns who that was, without `pids`. `LIST`: nobody is signalled. `LEFT`: only `pids`, with
    KILL, and those of them that were there are returned. `SHELL`: the shell too, with KILL,
    and it is among those returned. Empty as well when the box has no room for one more process.
    """
    argv = ["sh", "-c", SCRIPT, "sh", str(shell), signal, scope, *pids]
    try:
        done = box.exec(argv, seconds=_SECONDS, cwd="/", user="0:0")
    except RuntimeFault:
        if box.lost():
            raise
        return ()
    return tuple(word for word in done.stdout.decode("ascii", "replace").split() if word.isdigit())
