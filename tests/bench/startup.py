"""How long `stillroom --help` takes, beside a bare interpreter: medians of 15, interleaved."""

import subprocess
import sys
import time
from statistics import median

SUBJECTS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "stillroom --help": [sys.executable, "-m", "sandbox", "--help"],
    "stillroom run --help": [sys.executable, "-m", "sandbox", "run", "--help"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(15):
        for name, argv in SUBJECTS.items():
            began = time.monotonic()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.monotonic() - began)
    for name, found in times.items():
        print(f"{name:<22} {median(found):.3f} s")


if __name__ == "__main__":
    main()
