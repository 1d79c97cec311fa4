"""Where things are inside an image: Debian bookworm, amd64, merged /usr."""

from sandbox.errors import ImageFault

ARCH = "amd64"
PYTHON = "python3.11"
CACHE_TAG = "cpython-311"
INTERPRETER = f"usr/bin/{PYTHON}"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib")
BIN = "usr/local/bin"
DIST_PACKAGES = f"usr/local/lib/{PYTHON}/dist-packages"
SOURCE_FOLDERS = (f"usr/lib/{PYTHON}", "usr/lib/python3", f"usr/local/lib/{PYTHON}")
"""Where Python sources are worth compiling ahead."""
DPKG_STATUS = "var/lib/dpkg/status"
MERGED = ("bin", "lib", "lib64", "sbin")
"""Links into /usr since bookworm; packages still ship files under the old names."""


def inside(path: str) -> str:
    """`path` as the image has it: relative, within merged /usr, "" for the root itself."""
    parts = [p for p in path.split("/") if p not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise ImageFault(f"a file would land outside of the image: {path!r}", retry=False)
    if parts and parts[0] in MERGED:
        parts.insert(0, "usr")
    return "/".join(parts)
