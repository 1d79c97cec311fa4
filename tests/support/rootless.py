"""Run by test_rootless as a user who is not root: makes a box, and says what it saw, as JSON."""

import json
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox.errors import RuntimeFault
from sandbox.runtime.embedded.host import EmbeddedRuntime
from sandbox.runtime.spec import BoxSpec, Stillness
from sandbox.runtime.store import Store

AT = 1_715_774_400


def main() -> None:
    spec: BoxSpec = pickle.loads(sys.stdin.buffer.read())
    runtime = EmbeddedRuntime(Store(Path(sys.argv[1])))
    found: dict[str, Any] = {"user": os.geteuid(), "rootless": runtime.capabilities().rootless}
    try:
        with runtime.create(spec) as box:
            found["inside"] = box.exec(["id", "-u"], seconds=60).stdout.decode()
            script = "echo one > /root/new; rm /usr/bin/wc; mkdir -p /srv/a/b"
            found["wrote"] = box.exec(["sh", "-c", script], seconds=60).exit_code
            found["changes"] = [f"{c.kind} {c.path}" for c in box.changes()]
            found["trusted"] = box.exec(["id", "-u"], seconds=60, trusted=True).stdout.decode()
            with box.fork() as other:
                shown = other.exec(["sh", "-c", "cat /root/new; ls /usr/bin/wc"], seconds=60)
                found["fork"] = shown.stdout.decode()
            bomb = "for i in $(seq 100); do sleep 60 & done 2>&1; true"
            found["bomb"] = box.exec(["bash", "-c", bomb], seconds=60).stdout.decode()
            found["refused"] = box.exec(["mount", "-t", "tmpfs", "x", "/tmp"], seconds=60).exit_code
            box.reset()
            found["reset"] = [f"{c.kind} {c.path}" for c in box.changes()]
        still = Stillness(at_ns=AT * 10**9)
        with runtime.create(replace(spec, still=still)) as box:
            asking = ["bash", "-c", "echo $EPOCHSECONDS; stat -c %Y /proc/self; cat /proc/uptime"]
            found["clock"] = [
                [float(word) for word in box.exec(asking, seconds=60, trusted=t).stdout.split()[:3]]
                for t in (False, True)
            ]
            found["clock"].append(AT)
        try:
            runtime.create(replace(spec, limits=replace(spec.limits, disk="loop")))
        except RuntimeFault as e:
            found["loop"] = str(e)
    finally:
        runtime.close()
    found["left"] = sorted(p.name for p in (Path(sys.argv[1]) / "boxes").iterdir())
    sys.stdout.write(json.dumps(found))


main()
