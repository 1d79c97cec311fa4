# Shared by the scripts beside it: a virtual environment and the system packages we need.
# Sourced with the repository's root as the working directory.

UV_VERSION=0.13.9

say() { printf '%s\n' "$*" >&2; }

# need COMMAND PACKAGE: install the Debian or Ubuntu package unless the command is there.
need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        say "$1 is missing and cannot be installed from here."
        say "  hint: sudo apt-get install $2   (then run this again)"
        exit 2
    fi
    say "installing $2"
    if [ -z "${updated:-}" ]; then
        apt-get update -qq >&2
        updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# Print the newest Python from 3.11 on that can make virtual environments.
find_python() {
    for name in python3.13 python3.12 python3.11 python3; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
        then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

# Make .venv from uv.lock, or bring it up to date.
set_up() {
    need git git
    if ! python=$(find_python); then
        need no-such-command python3-venv
        python=$(find_python) || { say "Python 3.11 or later is needed."; exit 2; }
    fi
    if [ ! -x .venv/bin/python ]; then
        say "making .venv with $python"
        "$python" -m venv .venv
    fi
    if ! .venv/bin/uv --version 2>/dev/null | grep -q "^uv $UV_VERSION "; then
        .venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
    fi
    .venv/bin/uv sync --quiet --frozen --compile-bytecode --python .venv/bin/python "$@"
}
