"""Ending what a command has started, from inside its box and by process id."""

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import Box

_SECONDS = 30.0
_SCRIPT = r"""
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
    SHELL) for pid in $targets "$@" "$shell"; do kill -s KILL "$pid" 2>/dev/null; done ;;
    LEFT) targets=; for pid in "$@"; do kill -s KILL "$pid" 2>/dev/null && targets="$targets $pid"; done ;;
    *) for pid in $targets "$@"; do kill -s "$signal" "$pid" 2>/dev/null; done ;;
esac
echo "$targets"
"""


def signalled(
    box: Box, shell: int, signal: str, pids: tuple[str, ...] = (), *, scope: str = "foreground"
) -> tuple[str, ...]:
    """Signal the foreground processes of the shell's terminal, all that they started, and `pids`.

    `scope`: or all processes of its `session`, but never the shell itself.

    Returns who that was, without `pids`. `LIST`: nobody is signalled. `LEFT`: only `pids`, with
    KILL, and those of them that were there are returned. `SHELL`: the shell too, with KILL.
    Empty as well when the box has no room for one more process.
    """
    argv = ["sh", "-c", _SCRIPT, "sh", str(shell), signal, scope, *pids]
    try:
        done = box.exec(argv, seconds=_SECONDS, cwd="/", user="0:0")
    except RuntimeFault:
        if box.lost():
            raise
        return ()
    return tuple(word for word in done.stdout.decode("ascii", "replace").split() if word.isdigit())
