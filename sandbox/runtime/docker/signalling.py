"""Signals to a terminal's programs in an image without a Python: by its `sh`, as in ../family.py."""

from collections.abc import Sequence

_SCRIPT = r"""
shell=$1 number=$2 scope=$3; shift 3
all=
for place in /proc/[0-9]*; do
    { read -r line < "$place/stat"; } 2>/dev/null || continue
    pid=${place#/proc/} rest=${line##*) }
    set -f; old=$*; set -- $rest
    case $scope in session) all="$all $pid:$2:$4" own=$4 ;; *) all="$all $pid:$2:$3" own=$6 ;; esac
    [ "$pid" = "$shell" ] && wanted=$own
    set -- $old; set +f
done
found=" "
[ "$scope" != none ] && [ "${wanted:-0}" -gt 0 ] && for one in $all; do
    pid=${one%%:*}
    [ "${one##*:}" = "$wanted" ] && [ "$pid" != "$shell" ] && found="$found$pid "
done
grown=yes
while [ "$grown" ]; do
    grown=
    for one in $all; do
        pid=${one%%:*} parent=${one#*:} parent=${parent%:*}
        case "$found" in *" $pid "*) continue ;; esac
        case "$found" in *" $parent "*) found="$found$pid " grown=yes ;; esac
    done
done
for pid in $found "$@"; do
    [ "$pid" -gt 1 ] && kill -s "$number" "$pid" 2>/dev/null && printf "%s " "$pid"
done
exit 0
"""


def command(shell: int, number: int, scope: str, more: Sequence[int]) -> list[str]:
    """It prints who was there."""
    return ["sh", "-c", _SCRIPT, "sh", str(shell), str(number), scope, *map(str, more)]
