"""Random scripts of bash's builtins, for hypothesis: valid, short, and to an end."""

from hypothesis import strategies as st

NAMES = ("x", "y", "z")
FIRST = b"unset w x y z a; unset -f f; set --; cd /\n"
"""What an earlier script may have left."""
_SPECIAL = "'\"\\$`!*?[]{}()<>|&;#~ \t\n\r\x01\x03\x04\x07\x08\x1b\x1c\x7f"
_texts = st.text(
    st.one_of(
        st.sampled_from(_SPECIAL + "abc019-=:,./%é漢😀\udcff\udc80"),
        st.characters(
            max_codepoint=0x2FFF,
            exclude_characters="\0",
            categories=("L", "M", "N", "P", "S", "Z", "Cc", "Cf"),
        ),
    ),
    max_size=8,
)
_names = st.sampled_from(NAMES)
_numbers = st.integers(-5, 300).map(str)
_plain = st.text("abcxyz019_", min_size=1, max_size=5)


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _double(text: str) -> str:
    for special in '\\"$`':
        text = text.replace(special, "\\" + special)
    return f'"{text}"'


def _escaped(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    return "$'" + "".join(f"\\x{byte:02x}\\{0o60:o}"[:4] for byte in data) + "'"


def _backslashed(text: str) -> str:
    return "".join("'\n'" if c == "\n" else f"\\{c}" for c in text) or "''"


_quoted = st.one_of(*(_texts.map(quote) for quote in (_single, _double, _escaped, _backslashed)))
_patterns = st.sampled_from(["a*", "*", "?", "[!a]", "b", "''"])
_arithmetic = st.recursive(
    st.one_of(_numbers, _names),
    lambda inner: st.builds(
        "({} {} {})".format,
        inner,
        st.sampled_from(["+", "-", "*", "<", "==", "&&", "|", "^", "%"]),
        inner,
    ),
    max_leaves=4,
)
_expansions = st.one_of(
    _names.map("${}".format),
    _names.map('"${}"'.format),
    _names.map("${{#{}}}".format),
    _names.map('"${{{}^^}}"'.format),
    _names.map('"${{{}@Q}}"'.format),
    st.builds('"${{{}:-{}}}"'.format, _names, _plain),
    st.builds('"${{{}%{}}}"'.format, _names, _patterns),
    st.builds('"${{{}##{}}}"'.format, _names, _patterns),
    st.builds('"${{{}//{}/{}}}"'.format, _names, _patterns, _plain),
    st.builds('"${{{}:{}:2}}"'.format, _names, st.sampled_from(["0", "1", "3"])),
    st.sampled_from(
        ['"${a[@]}"', '"${a[*]}"', "${#a[@]}", '"${a[1]}"', "$#", '"$*"', "$?", "$PWD"]
    ),
    _arithmetic.map("$(({}))".format),
    st.builds('"$(echo {})"'.format, _quoted),
)
_words = st.one_of(_quoted, _expansions, _plain)
_several = st.lists(_words, max_size=3).map(" ".join)
_conditions = st.one_of(
    st.builds("[ {} = {} ]".format, _quoted, _quoted),
    st.builds("[[ {} == {} ]]".format, _words, _patterns),
    st.builds("test -n {}".format, _quoted),
    _arithmetic.map("(( {} ))".format),
    st.sampled_from(["true", "false", "[ -d / ]", "[ -t 1 ]", "test -e /no/file"]),
)
_simple = st.one_of(
    _several.map("echo {}".format),
    _several.map("echo -n {}".format),
    _several.map("printf '%s|' {}".format),
    _several.map("printf '%q\\n' {}".format),
    _quoted.map("printf %b {}".format),
    st.builds("{}={}".format, _names, _words),
    st.builds("printf -v {} %s. {}".format, _names, _several),
    st.builds("read -r {} <<< {}".format, _names, _quoted),
    st.builds("read {} {} <<< {}".format, _names, _names, _quoted),
    _several.map("a=({})".format),
    _several.map("a+=({})".format),
    _several.map("set -- {}".format),
    _arithmetic.map("let 'x = {}'".format),
    st.sampled_from(
        ["cd /tmp", "cd /usr/bin", "cd -P ..", "pwd", "cd /no/folder", "nosuch", "shift"]
    ),
    st.integers(0, 255).map("(exit {})".format),
    _conditions,
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}\n{}".format, inner, inner),
        st.builds("{}; {}".format, inner, inner),
        st.builds("{} && {}".format, inner, inner),
        st.builds("{} || {}".format, inner, inner),
        inner.map("! {}".format),
        inner.map("( {} )".format),
        inner.map("{{ {}\n}} 2>&1".format),
        st.builds("{{ {}\n}} | {{ {}\n}}".format, inner, inner),
        st.builds('{{ {}\n}} | while read -r y; do echo "<$y>"; done'.format, inner),
        st.builds("if {}; then {}\nelse {}\nfi".format, _conditions, inner, inner),
        st.builds("for x in {}; do {}\ndone".format, _several, inner),
        st.builds("case {} in {}) {}\n;; *) {}\n;; esac".format, _words, _patterns, inner, inner),
        st.builds("for ((w = 0; w < 3; w++)); do {}\ndone".format, _simple),
        st.builds("f() {{ local x=1; {}\n}}; f {}".format, inner, _several),
        st.builds("f() ( {}\nreturn 7 ); f".format, inner),
    )


_documents = st.one_of(
    st.just(""),
    _texts.map("\nwhile read -r y; do echo \"$y\"; done <<'E_O_F'\n{}\nE_O_F".format),
    _plain.map('\nwhile read -r y; do echo "$y"; done <<E_O_F\n$x {} $((1 + 1))\nE_O_F'.format),
)
scripts = st.builds(
    lambda script, end: FIRST + (script + end).encode("utf-8", "surrogateescape"),
    st.recursive(_simple, _compound, max_leaves=6),
    _documents,
)
