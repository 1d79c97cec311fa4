"""Named keys, and the bytes a terminal sends for them; names as tmux has them."""

_PLAIN = {
    "Enter": b"\r", "Tab": b"\t", "BTab": b"\x1b[Z", "Escape": b"\x1b", "Space": b" ",
    "BSpace": b"\x7f", "Up": b"\x1b[A", "Down": b"\x1b[B", "Right": b"\x1b[C", "Left": b"\x1b[D",
    "Home": b"\x1b[H", "End": b"\x1b[F", "Insert": b"\x1b[2~", "Delete": b"\x1b[3~",
    "PageUp": b"\x1b[5~", "PageDown": b"\x1b[6~",
    "F1": b"\x1bOP", "F2": b"\x1bOQ", "F3": b"\x1bOR", "F4": b"\x1bOS", "F5": b"\x1b[15~",
    "F6": b"\x1b[17~", "F7": b"\x1b[18~", "F8": b"\x1b[19~", "F9": b"\x1b[20~",
    "F10": b"\x1b[21~", "F11": b"\x1b[23~", "F12": b"\x1b[24~",
}  # fmt: skip
_SAME = {
    "Return": "Enter", "Esc": "Escape", "Backspace": "BSpace", "Del": "Delete", "DC": "Delete",
    "IC": "Insert", "PgUp": "PageUp", "PPage": "PageUp", "PgDn": "PageDown", "NPage": "PageDown",
    "S-Tab": "BTab",
}  # fmt: skip
_BY_NAME = {name.lower(): code for name, code in _PLAIN.items()} | {
    other.lower(): _PLAIN[name] for other, name in _SAME.items()
}
NAMES = (*_PLAIN, *_SAME)
_PREFIXES = {"S": "S", "M": "M", "A": "M", "ALT": "M", "C": "C", "^": "C", "CTRL": "C"}
_LONGEST = 20
_MODIFIERS = {"S": 1, "C": 4}


def named(name: str) -> bytes | None:
    """C-c, M-x, C-Up, Enter…; None for what is no key."""
    if len(name) > _LONGEST:
        return None
    if len(name) == 1:
        try:
            return name.encode()
        except UnicodeEncodeError:  # half a character
            return None
    return _BY_NAME.get(name.lower()) or _with_others(*name.partition("-")[::2])


def _with_others(prefix: str, key: str) -> bytes | None:
    prefix = _PREFIXES.get(prefix.upper(), "")
    if not prefix or not key:
        return None
    if prefix == "M":
        code = named(key)
        return None if code is None else b"\x1b" + code
    if prefix == "C" and len(key) == 1:
        return _control(key)
    code = _BY_NAME.get(key.lower())
    return _modified(code, 1 + _MODIFIERS[prefix]) if code else None


def _control(key: str) -> bytes | None:
    if not key.isascii():  # as large letters, some are two, and some are ASCII
        return None
    if key == "?":
        return b"\x7f"
    if key == " ":
        return b"\0"
    number = ord(key.upper())
    return bytes([number & 0x1F]) if 0x40 <= number < 0x60 else None


def _modified(code: bytes, modifier: int) -> bytes:
    """The way of xterm to say that a key was pressed with others."""
    if code.startswith(b"\x1bO"):
        code = b"\x1b[" + code[2:]
    if not code.startswith(b"\x1b["):
        return code
    if code.endswith(b"~"):
        return code[:-1] + b";%d~" % modifier
    return b"\x1b[1;%d%c" % (modifier, code[-1])
