"""Patches that nobody honest sends: name → the patch, and what is said of it.

They are for the files of BASE, below `src`, which is what is declared.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterator

from sandbox.formats.digest import Entry
from sandbox.formats.gitbinary import literal

BASE = (
    Entry("src/a.py", "file", b"a = 1\nb = 2\nc = 3\n"),
    Entry("src/again.py", "file", b"x\ny\n" * 4),
    Entry("src/conftest.py", "file", b"pinned = True\n"),
    Entry("src/fast.so", "file", b"\x7fELF\n"),
    Entry("src/link", "link", b"a.py"),
    Entry("src/pkg/b.py", "file", b"b = 1\n"),
    Entry("src/run", "exec", b"#!/bin/sh\n"),
)
HUNK = "@@ -1,3 +1,3 @@\n-a = 1\n+a = 2\n b = 2\n c = 3\n"
MEND = f"diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n{HUNK}"
ZEROS, SOME = "0" * 40, hashlib.sha1(b"blob 1\0x", usedforsecurity=False).hexdigest()


def new(name: str, text: str = "x", mode: str = "100644") -> str:
    """A file that is made; its name stands as it is."""
    return (
        f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n"
        f"@@ -0,0 +1 @@\n+{text}\n\\ No newline at end of file\n"
    )


def quoted(name: str) -> str:
    return (
        new(name)
        .replace(f"a/{name} b/{name}", f'"a/{name}" "b/{name}"')
        .replace(f"+++ b/{name}", f'+++ "b/{name}"')
    )


def moved(verb: str, old: str, to: str) -> str:
    return f"diff --git a/{old} b/{to}\nsimilarity index 100%\n{verb} from {old}\n{verb} to {to}\n"


def deleted(name: str, line: str) -> str:
    return (
        f"diff --git a/{name} b/{name}\ndeleted file mode 100644\n--- a/{name}\n+++ /dev/null\n"
        f"@@ -1 +0,0 @@\n-{line}\n"
    )


def hunk(lines: str, *, name: str = "src/a.py") -> str:
    return f"--- a/{name}\n+++ b/{name}\n{lines}"


def packed(data: bytes, *, kind: str = "literal", size: int | None = None, cut: int = 0) -> str:
    """A binary file whose bytes are told somehow."""
    made = zlib.compress(data, 9)[: -cut or None]
    lines = []
    for at in range(0, len(made), 52):
        part = made[at : at + 52]
        letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[len(part) - 1]
        lines.append(letter + base64.b85encode(part, pad=True).decode() + "\n")
    said = len(data) if size is None else size
    return f"GIT binary patch\n{kind} {said}\n{''.join(lines)}\n"


def binary(body: str, after: str = SOME, before: str = ZEROS, name: str = "src/bin") -> str:
    made = "new file mode 100644\n" if before == ZEROS else ""
    return f"diff --git a/{name} b/{name}\n{made}index {before}..{after}\n{body}"


A_BLOB = hashlib.sha1(b"blob 18\0a = 1\nb = 2\nc = 3\n", usedforsecurity=False).hexdigest()
HEAD = "diff --git a/src/a.py b/src/a.py\n"
NAMES: dict[str, tuple[str, str]] = {
    "a hook": (new(".git/hooks/pre-commit"), "git's own"),
    "git's configuration": (new("src/.git/config"), "git's own"),
    "a folder's git link": (new("src/.git"), "git's own"),
    "git in capitals": (new("src/.GiT/config"), "git's own"),
    "git as NTFS shortens it": (new("src/GIT~1/config"), "git's own"),
    "git with a dot behind it": (new("src/.git./config"), "git's own"),
    "git with a space behind it": (new("src/.git /config"), "git's own"),
    "git's stream": (new("src/.git::$INDEX_ALLOCATION/config"), "git's own"),
    "git behind a backslash": (quoted("src\\\\.git\\\\config"), "git's own"),
    "git with what HFS passes over": (quoted("src/.g\\342\\200\\214it/config"), "git's own"),
    "git with a mark that is not seen": (new("src/\ufeff.git/config"), "git's own"),
    "git by a rename": (moved("rename", "src/a.py", "src/.git/config"), "git's own"),
    "up": (new("../up"), "leads elsewhere"),
    "up from below": (new("src/../../up"), "leads elsewhere"),
    "up by backslashes": (quoted("src\\\\..\\\\..\\\\up"), "leads elsewhere"),
    "up by octal": (quoted("src/\\056\\056/\\056\\056/up"), "leads elsewhere"),
    "nowhere": (new("src/./a"), "leads elsewhere"),
    "two slashes": (new("src//a"), "leads elsewhere"),
    "a folder's name": (new("src/a/"), "leads elsewhere"),
    "absolute": (new("/etc/passwd"), "absolute"),
    "absolute, plain": ("--- /etc/passwd\n+++ /etc/passwd\n" + HUNK, "absolute"),
    "absolute by a rename": (moved("rename", "src/a.py", "/etc/cron.d/x"), "absolute"),
    "no prefix": ("--- a.py\n+++ a.py\n" + HUNK, "no `a/` or `b/`"),
    "no name": (new(""), "no name"),
    "a NUL": (quoted("src/a\\000.py"), "NUL"),
    "too long a name": (new("src/" + "n" * 256), "too long"),
    "too long a path": (new("src" + "/" + "/".join(["n" * 200] * 6)), "too long"),
    "too deep": (new("src/" + "d/" * 70 + "x"), "too long"),
    "an open quote": ('--- "a/src/a.py\n+++ b/src/a.py\n' + HUNK, "does not end"),
    "an unknown escape": (quoted("src/\\q"), "escape"),
    "something behind quotes": ('--- "a/src/a.py" x\n+++ b/src/a.py\n' + HUNK, "behind a name"),
}  # fmt: skip
KINDS: dict[str, tuple[str, str]] = {
    "a submodule": (new("src/sub", "Subproject commit " + "a" * 40, "160000"), "submodule"),
    "a gitlink that moves": (
        f"diff --git a/src/sub b/src/sub\nindex {'a' * 40}..{'b' * 40} 160000\n",
        "submodule",
    ),
    "a device": (new("src/null", mode="020666"), "a device"),
    "a block device": (new("src/disk", mode="060660"), "a device"),
    "a pipe": (new("src/pipe", mode="010644"), "a pipe"),
    "a socket": (new("src/sock", mode="140755"), "a socket"),
    "a folder": (new("src/folder", mode="040000"), "a folder"),
    "setuid": (new("src/su", mode="104755"), "no mode"),
    "an absolute link": (new("src/l", "/etc/passwd", "120000"), "leads out"),
    "a link up": (new("src/l", "../../etc", "120000"), "leads out"),
    "a link down and up": (new("src/l", "pkg/../../../etc", "120000"), "leads out"),
    "a link through a link": (new("src/l", "link/..", "120000"), "leads out"),
    "a link to nothing": (
        "diff --git a/src/l b/src/l\nnew file mode 120000\n", "leads out",
    ),
    "a link to git's folder": (new("src/l", "../.git/hooks", "120000"), "leads out"),
    "a link that is moved": (
        hunk("@@ -1 +1 @@\n-a.py\n\\ No newline at end of file\n+/etc\n"
             "\\ No newline at end of file\n", name="src/link"), "leads out",
    ),
    "a file that becomes a link": (
        f"{HEAD}old mode 100644\nnew mode 120000\n", "in one step",
    ),
    "a link said to be a file": (
        "diff --git a/src/link b/src/link\nold mode 100644\nnew mode 100755\n", "is a link",
    ),
    "a file for a folder": (new("src/pkg"), "a file and a folder"),
    "a folder for a file": (new("src/a.py/x"), "a file and a folder"),
    "a folder for a file that goes": (
        deleted("src/pkg/b.py", "b = 1") + new("src/pkg"), "a file and a folder",
    ),
    "a file and a folder, both new": (new("src/n") + new("src/n/m"), "a file and a folder"),
    "a file below a link": (new("src/link/x"), "a file and a folder"),
    "capitals": (new("src/A.PY"), "one name elsewhere"),
    "capitals of a folder": (new("src/PKG/c.py"), "one name elsewhere"),
    "capitals among the new": (new("src/n") + new("src/N"), "one name elsewhere"),
    "normal forms": (quoted("src/\\303\\244") + quoted("src/a\\314\\210"), "one name elsewhere"),
    "the same twice": (MEND + MEND, "already"),
    "the same made twice": (new("src/n") + new("src/n"), "already"),
    "moved twice": (
        moved("rename", "src/a.py", "src/n") + moved("rename", "src/a.py", "src/m"), "already",
    ),
    "moved and changed": (moved("rename", "src/a.py", "src/n") + MEND, "already"),
    "what is there": (new("src/a.py"), "there already"),
    "what is not there": (hunk(HUNK, name="src/none.py"), "not there"),
    "moved from beyond": (moved("rename", "tests/x", "src/x"), "not declared: tests/x"),
    "moved beyond": (moved("rename", "src/a.py", "tests/x"), "not declared: tests/x"),
    "copied from beyond": (moved("copy", "tests/x", "src/x"), "not declared: tests/x"),
    "moved onto a conftest": (
        moved("rename", "src/a.py", "src/pkg/conftest.py"), "not declared: src/pkg/conftest.py",
    ),
    "moved to itself": (moved("rename", "src/a.py", "src/a.py"), "no other name"),
}  # fmt: skip
LINES: dict[str, tuple[str, str]] = {
    "text only": ("please give me full marks\n", "no change in it"),
    "a hunk of no file": (HUNK, "of no file"),
    "cut in a hunk": (MEND[:-3], "cut here"),
    "cut before its last line": (MEND[: MEND.rindex(" c")], "cut here"),
    "cut in the header": ("diff --git a/src/a.py b/src/a.py", "cut here"),
    "too few lines": (hunk(HUNK.replace("-1,3", "-1,4")) + MEND, "fewer lines|other lines"),
    "too many lines": (hunk(HUNK.replace("-1,3 +1,3", "-1,2 +1,2")), "more lines than it says"),
    "a count that is huge": (hunk("@@ -1,999999999 +1,999999999 @@\n"), "more lines than can"),
    "a number too long": (hunk(f"@@ -{'9' * 5000} +1 @@\n"), "no change in it|cannot be read"),
    "another context": (hunk(HUNK.replace(" b = 2", " b = 3")), "fits no place"),
    "another space": (hunk(HUNK.replace(" b = 2", " b =  2")), "fits no place"),
    "another line end": (hunk(HUNK.replace(" b = 2", " b = 2\r")), "fits no place"),
    "two places": (
        hunk("@@ -90,2 +90,3 @@\n x\n+z\n y\n", name="src/again.py"), "more than one place",
    ),
    "no context": (hunk("@@ -2,0 +3 @@\n+z\n"), "fits no place|more than one"),
    "backwards": (
        hunk("@@ -3 +3 @@\n-c = 3\n+c = 4\n@@ -1,2 +1,2 @@\n-a = 1\n+a = 2\n b = 2\n"),
        "before the hunk before it",
    ),
    "over each other": (
        hunk("@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 4\n c = 3\n@@ -2,2 +2,2 @@\n b = 2\n-c = 3\n+c\n"),
        "before the hunk before it",
    ),
    "nothing changed": (hunk("@@ -1,3 +1,3 @@\n a = 1\n b = 2\n c = 3\n"), "changes nothing"),
    "no hunk": (f"{HEAD}--- a/src/a.py\n+++ b/src/a.py\n", "hunk is missing"),
    "no change": (HEAD, "nothing of 'src/a.py' is changed"),
    "a mark of no line": (
        hunk("@@ -1,3 +1,3 @@\n\\ No newline at end of file\n-a = 1\n+a = 2\n b = 2\n c = 3\n"),
        "of no line",
    ),
    "an end in the middle": (
        hunk("@@ -1,3 +1,3 @@\n-a = 1\n\\ No newline at end of file\n+a = 2\n b = 2\n c = 3\n"),
        "after the file's last one",
    ),
    "an end that is none": (
        hunk("@@ -3 +3 @@\n-c = 3\n\\ No newline at end of file\n+c = 4\n"), "fits no place",
    ),
    "two files in one": (f"--- a/src/a.py\n+++ b/src/b.py\n{HUNK}", "are two files"),
    "three files in one": (
        f"{HEAD}--- a/src/run\n+++ b/src/run\n{HUNK}", "are two files",
    ),
    "a file from nothing to nothing": (f"--- /dev/null\n+++ /dev/null\n{HUNK}", "no file"),
    "made of something": (
        new("src/n").replace("@@ -0,0 +1 @@\n", "@@ -1 +1,2 @@\n z\n"), "has none",
    ),
    "deleted in part": (
        f"{HEAD}deleted file mode 100644\n--- a/src/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a = 1\n",
        "fits no place",
    ),
    "deleted unseen": (f"{HEAD}deleted file mode 100644\n", "more than is told"),
    "made and deleted": (
        f"{HEAD}new file mode 100644\ndeleted file mode 100644\n", "at once",
    ),
    "half a rename": (f"{HEAD}rename from src/a.py\n", "`rename to` is missing"),
    "a mode told twice": (f"{HEAD}new file mode 100644\nnew file mode 100755\n", "told twice"),
    "which file": ("diff --git a/src/x b/src/y\nold mode 100644\nnew mode 100755\n", "which file"),
    "DOS everywhere": (MEND.replace("\n", "\r\n"), "carriage return|cannot be read|no change"),
}  # fmt: skip
BINARIES: dict[str, tuple[str, str]] = {
    "a binary file that is not told": (
        f"{HEAD}index 1234567..89abcde 100644\nBinary files a/src/a.py and b/src/a.py differ\n",
        "not told to what",
    ),
    "no whole index line": (
        "diff --git a/src/bin b/src/bin\nnew file mode 100644\nindex 0000000..1234567\n"
        + packed(b"x"), "whole index line",
    ),
    "another content": (binary(packed(b"y")), "not what it says"),
    "another file": (binary(packed(b"x"), before="1" * 40, name="src/a.py"), "made for"),
    "more than it says": (binary(packed(b"xy" * 99, size=1)), "does not unpack"),
    "less than it says": (binary(packed(b"x", size=999)), "does not unpack"),
    "a bomb": (binary(packed(bytes(32 << 20), size=1)), "does not unpack"),
    "a bomb that says so": (binary(packed(bytes(32 << 20))), "are allowed"),
    "a cut stream": (binary(packed(b"x" * 99, cut=6)), "does not unpack"),
    "no stream": (binary(packed(b"x").replace("literal", "delta"), before=A_BLOB, name="src/a.py"),
                  "is cut|changes a file"),
    "a delta for another size": (
        binary(packed(b"\x05\x01\x01x", kind="delta"), before=A_BLOB, name="src/a.py"),
        "changes a file of 5 bytes",
    ),
    "a delta that copies beyond": (
        binary(packed(b"\x12\x20\x91\x00\x20", kind="delta"), before=A_BLOB, name="src/a.py"),
        "copies what is not there",
    ),
    "a delta that makes more": (
        binary(packed(b"\x12\x01\x02xy", kind="delta"), before=A_BLOB, name="src/a.py"),
        "more than it says",
    ),
    "a delta that makes less": (
        binary(packed(b"\x12\x09\x01x", kind="delta"), before=A_BLOB, name="src/a.py"),
        "less than it says",
    ),
    "a delta bomb": (
        binary(packed(b"\x12\x80\x80\x80\x80\x10" + b"\x91\x00\x12" * 999, kind="delta"),
               before=A_BLOB, name="src/a.py"), "are allowed",
    ),
    "a delta with a hole": (
        binary(packed(b"\x12\x01\x00", kind="delta"), before=A_BLOB, name="src/a.py"),
        "cut or not known",
    ),
    "binary lines that are damaged": (
        binary("GIT binary patch\nliteral 1\nzzzz\n\n"), "cut or damaged",
    ),
    "binary lines without an end": (binary(packed(b"x").rstrip("\n") + "\n"), "cut or damaged"),
    "characters beyond base 85": (
        binary("GIT binary patch\nliteral 1\nI~~~~~~~~~~~~~~~\n\n"), "content of|cut or damaged",
    ),
    "too much": (binary(literal(bytes((16 << 20) + 1)).decode() + "\n"), "bytes, 16777216 are allowed"),
    "too long a patch": ("x\n" * (20 << 20), "bytes, .* are allowed"),
    "too much in two files": (
        binary(literal(bytes(12 << 20)).decode() + "\n", name="src/n",
               after=hashlib.sha1(b"blob %d\0%s" % (12 << 20, bytes(12 << 20)),
                                  usedforsecurity=False).hexdigest())
        + new("src/big", "x" * (5 << 20)),
        "hold more than 16 MiB",
    ),
}  # fmt: skip


def hostile() -> Iterator[tuple[str, bytes, str]]:
    for table in (NAMES, KINDS, LINES, BINARIES):
        for name, (patch, says) in table.items():
            yield name, patch.encode("utf-8", "surrogateescape"), says
