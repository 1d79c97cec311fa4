"""The rows of the table: kinds of program, each with a command that says what time it is."""

from dataclasses import dataclass

from tests.contract.clock.answers import PIN, Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    command: str
    """Prints lines `now INSTANT`, `file INSTANT` (of a file's time), `started INSTANT` (of something
    that the kernel has started) and `waited FOUND WANTED`."""
    says: Counts
    then: str = ""
    """Run after it, when its shell has ended, in the same box; both say what is counted."""
    seconds: float = 60.0
    """What takes longer hangs."""


def row(
    name: str,
    command: str,
    *,
    now: int = 0,
    files: int = 0,
    waits: int = 0,
    starts: int = 0,
    then: str = "",
) -> Row:
    says = Counts(now=now, files=files, waits=waits, starts=starts)
    return Row(name=name, command=command, says=says, then=then)


_T = 'cd "$(mktemp -d)"; '
"""In a folder of its own."""
_CERTIFICATE = f'{_T}sh /zoo/certificate.sh {PIN} "$PWD"; '
_EPOCH = "date -u +%s -d"
_JAVAC = "java -cp /usr/share/java/ecj.jar org.eclipse.jdt.internal.compiler.batch.Main"
_PYTHON = "cd /zoo; python3 -B /zoo/"

C = (
    row("C, dynamic", "/zoo/now_dynamic", now=6),
    row("C, static (glibc)", "/zoo/now_static", now=6),
    row("C, static and position-independent", "/zoo/now_pie", now=6),
    row("C, static (musl)", "/zoo/now_musl", now=6),
    row(
        "C, setuid, as another user with no environment",
        f"{_T}chmod 755 .; cp /zoo/now_dynamic /zoo/now_static .; chmod 4755 now_*\n"
        "for p in now_dynamic now_static; do setpriv --reuid=65534 --regid=65534 --clear-groups "
        'env -i "$PWD/$p"; done',
        now=12,
    ),
    row("C, raw system calls", "/zoo/raw", now=4),
    row("assembler, no library", "/zoo/bare; /zoo/bare", now=2),
    row(
        "env -i",
        "env -i /zoo/now_dynamic; env -i /zoo/now_musl; env -i /bin/date +'now %s.%N'",
        now=13,
    ),
    row("threads that read the clock", "/zoo/threads", now=8),
    row("signals, 1000 a second, during time calls", "/zoo/storm", now=1, waits=3),
    row("vfork, posix_spawn", "/zoo/vfork /zoo/now_static; /zoo/vfork /zoo/now_dynamic", now=132),
)
DEADLINES = (
    row("deadlines: mutexes", "/zoo/waits locks", waits=2),
    row("deadlines: condition variables", "/zoo/waits conditions", waits=4),
    row("deadlines: semaphores", "/zoo/waits semaphores", waits=3),
    row("deadlines: clock_nanosleep, timerfd, timer", "/zoo/waits timers", waits=3),
    row("deadlines: message queues", "/zoo/waits queues", waits=2),
    row(
        "deadlines, of a static program",
        "for w in locks conditions semaphores timers; do /zoo/waits_static $w; done",
        waits=12,
    ),
)
LANGUAGES = (
    row("Go, static", "/zoo/now_go; env -i /zoo/now_go", now=42, files=2, waits=4),
    row("Go, with C", "/zoo/now_cgo", now=22, files=1, waits=2),
    row("Rust", "/zoo/now_rust", now=2, files=1, waits=2),
    row("Rust, static", "/zoo/now_rust_static", now=2, files=1, waits=2),
    row("Python: clocks, dates, text", f"{_PYTHON}clocks.py", now=10, files=2, waits=1),
    row("Python: threads, locks, queues", f"{_PYTHON}threads.py", waits=6),
    row("Python: asyncio", f"{_PYTHON}aio.py", now=1, waits=3),
    row("Python: subprocess, multiprocessing", f"{_PYTHON}programs.py", now=2, waits=4),
    row("Python: alarm, setitimer, sigtimedwait", f"{_PYTHON}alarm.py", now=2, waits=3),
    row("Node", "node /zoo/now.js", now=3, files=1, waits=1),
    row(
        "Java",
        f"{_T}{_JAVAC} -nowarn -source 9 -target 9 -d . /zoo/Now.java && java -cp . Now",
        now=2,
        files=1,
        waits=4,
    ),
    row(
        "Java, the machine itself",
        "java -XX:+UseSerialGC -Xlog:gc:stdout:timemillis -version 2>/dev/null"
        " | sed -n '1s/^\\[\\([0-9]*\\)\\([0-9]\\{3\\}\\)ms.*/now \\1.\\2/p'",
        now=1,
    ),
    row("Perl", "perl /zoo/now.pl", now=3, waits=2),
)
SHELLS = (
    row("date", "date +'now %s.%N'; TZ=Asia/Kolkata date +'now %s'", now=2),
    row(
        "bash",
        "bash -c 'echo now $EPOCHREALTIME; echo now $EPOCHSECONDS; printf \"now %(%s)T\\n\" -1'",
        now=3,
    ),
    row(
        "shells in shells",
        'sh -c \'bash -c "sh -c \\"exec bash -c \\\\\\"/zoo/now_musl; date +now\\\\ %s\\\\\\"\\""\'',
        now=7,
    ),
    row("timeout, sleep", "/zoo/watch 0.2 timeout 0.2 sleep 20; /zoo/watch 0.2 sleep 0.2", waits=2),
    row(
        "a daemon that outlives its shell",
        "rm -f /tmp/daemon; setsid sh -c 'sleep 0.3; /zoo/now_static > /tmp/.daemon; "
        'date +"now %s.%N" >> /tmp/.daemon; mv /tmp/.daemon /tmp/daemon\' > /dev/null 2>&1 &',
        then="until [ -e /tmp/daemon ]; do sleep 0.05; done; cat /tmp/daemon",
        now=7,
    ),
    row(
        "nohup",
        f"{_T}nohup sh -c 'sleep 0.2; exec /zoo/now_go' > nohup.out 2>/dev/null; cat nohup.out",
        now=21,
        files=1,
        waits=2,
    ),
    row(
        "200 processes at once",
        "for i in $(seq 100); do /zoo/now_static & /zoo/now_dynamic & done; wait",
        now=1200,
    ),
    row("strace", f"{_T}strace -f -o log /zoo/now_go && test -s log", now=21, files=1, waits=2),
)
FILES = (
    row(
        "stat",
        f"{_T}touch a; stat -c 'file %.9Y' a; stat -c 'file %.9Z' a; echo > a; stat -c 'file %Y' a",
        files=3,
    ),
    row("stat in a loop, in threads, with signals", f"{_T}/zoo/looks", files=2),
    row("stat in a loop, static", f"{_T}/zoo/looks_static; /zoo/looks_musl", files=4),
    row(
        "many files: find, git status, Python, Node, tar",
        f"{_T}git init -q .; for i in $(seq 300); do echo $i > f$i; done; git add .\n"
        "for i in 1 2 3; do git status --porcelain | grep -vc '^A '; done | grep -v 0\n"
        "find . -maxdepth 1 -name 'f*' -newermt @{0} ! -newermt @{1} | wc -l | grep -vx 300\n"
        "python3 -c 'import os; a = [os.stat(e.path) for e in os.scandir() if e.is_file()]; "
        'print(*{{e.st_mtime_ns // 10**9 - {0} >= 0 for e in a}} - {{True}}, end="")\'\n'
        'node -e \'const s = require("fs"); for (let i = 1; i < 300; i++) '
        "if (s.statSync(`f${{i}}`).mtimeMs < {0}000) console.log(i)'\n"
        "tar c f* | tar tv --full-time | grep -c ' 2024-05-15 1[12]:' | grep -vx 300\n"
        "true".format(PIN - 10, PIN + 7200),
    ),
    row("ls -l", f"{_T}touch a; ls -l --time-style='+file %s' a | grep -o 'file [0-9]*'", files=1),
    row(
        "find -newer, -mmin, -newermt",
        f"{_T}touch a; sleep 0.05; touch b; test $(find . -type f -newer a) = ./b || echo newer\n"
        "test $(find . -type f -mmin -1 | wc -l) = 2 || echo mmin\n"
        f"test $(find . -type f -newermt @{PIN - 10} ! -newermt @{PIN + 7200} | wc -l) = 2 || echo newermt\n"
        "find b -printf 'file %T@\\n' | cut -c 1-20",
        files=1,
    ),
    row(
        "make: edit, rebuild",
        f"{_T}printf 'b: a\\n\\tcp a b\\n' > Makefile; echo 1 > a\n"
        "make > log 2>&1; sleep 0.05; make -q || echo 'not up to date'\n"
        "sleep 0.05; echo 2 > a; make -q && echo 'not seen'; make >> log 2>&1\n"
        "cmp a b; grep -iE 'skew|future' log; stat -c 'file %Y' b",
        files=1,
    ),
    row(
        "tar: there and back",
        f"{_T}mkdir in out; date > in/a; sleep 0.05; tar cf a.tar in; tar xf a.tar -C out\n"
        "test $(stat -c %Y in/a) = $(stat -c %Y out/in/a) || stat in/a out/in/a\n"
        "tar tvf a.tar --full-time | grep -q '2024-05-15 1[12]:' || tar tvf a.tar\n"
        "stat -c 'file %Y' out/in/a",
        files=1,
    ),
    row(
        "git: dates, index",
        f"{_T}git init -q .; git config user.name a; git config user.email a@b; echo 1 > a; git add a\n"
        "git commit -qm one; git log -1 --format='now %at%nnow %ct'; git reflog -1 --date=unix"
        " --format='%gd' | sed 's/.*{/now /; s/}//'\n"
        "git diff --quiet; echo 2 > a; git diff --quiet && echo 'not seen'\n"
        "git status --porcelain | grep -v ' M a' || true",
        now=3,
    ),
    row(
        "pip install",
        f"{_T}python3 -B /zoo/wheel.py .; python3 -m pip -q install --no-index --target x --root-user-action ignore"
        " --disable-pip-version-check one-1-py3-none-any.whl; stat -c 'file %Y' x/one-1.dist-info/INSTALLER",
        files=1,
    ),
    row(
        "ps",
        f"sh -c 'exec 3>&1; TZ=UTC ps -o lstart= -p $$ | (read t; echo started $({_EPOCH} \"$t\"))'",
        starts=1,
    ),
    row(
        "uptime -s, /proc/stat",
        'awk \'/btime/{print "started", $2}\' /proc/stat; echo started $(date -d "$(uptime -s)" +%s)',
        starts=2,
    ),
)
CERTIFICATES = (
    row(
        "openssl: verify, req",
        f"{_CERTIFICATE}openssl verify -CAfile cert.pem cert.pem | grep -v OK\n"
        "openssl req -x509 -key key.pem -config /zoo/ca.cnf -days 3 -out new.pem\n"
        f'echo now $({_EPOCH} "$(openssl x509 -in new.pem -noout -startdate | cut -d= -f2)")',
        now=1,
    ),
    row("TLS on loopback", f"{_CERTIFICATE}python3 -B /zoo/handshake.py .", now=1),
)
ROWS = (*C, *DEADLINES, *LANGUAGES, *SHELLS, *FILES, *CERTIFICATES)
