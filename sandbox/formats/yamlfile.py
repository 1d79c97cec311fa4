"""YAML files: the one importer of yaml. Every value knows its line; aliases are refused."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml.constructor import SafeConstructor

from sandbox.errors import SpecError
from sandbox.formats.shape import Loc, parse

T = TypeVar("T")
MAX_BYTES = 16 << 20
MAX_DEPTH = 50
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALARS = SafeConstructor()
_TAG = "tag:yaml.org,2002:"


def load(path: Path, shape: type[T]) -> T:
    """The file as a `shape`. Raises SpecError with file, line and hint."""
    return open_document(path).parse(shape)


def open_document(path: Path) -> "Document":
    """The file as plain data that knows its lines. Raises SpecError."""
    text = read_text(path)
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as e:
        raise _syntax_error(path, text, e) from None
    if root is None:
        raise SpecError("the file is empty", where=str(path))
    reader = _Reader(path)
    return Document(reader.value(root, ()), reader.where)


@dataclass(frozen=True, slots=True)
class Document:
    data: Any
    where: Callable[[Loc], str]
    """Location within the data → file:line."""

    def parse(self, shape: type[T]) -> T:
        return parse(self.data, shape, self.where)


def dumps(data: Any) -> str:
    """Plain data as YAML, keys in the order given."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Dumper(yaml.SafeDumper):
    """Text with a line break of YAML's that is none of ours: written as such, it would be lost."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        odd = any(c in text for c in "\x85\u2028\u2029")
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if odd else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def read_text(path: Path) -> str:
    """A UTF-8 text file of bounded size. Raises SpecError, never an OSError."""
    try:
        with path.open("rb") as f:
            raw = f.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError("no such file", where=str(path)) from None
    except OSError as e:
        raise SpecError(f"cannot be read: {e.strerror}", where=str(path)) from None
    if len(raw) > MAX_BYTES:
        raise SpecError(f"larger than {MAX_BYTES >> 20} MiB", where=str(path))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        line = raw.count(b"\n", 0, e.start) + 1
        raise SpecError("not UTF-8 text", where=f"{path}:{line}") from None


def _syntax_error(path: Path, text: str, error: yaml.YAMLError) -> SpecError:
    mark = getattr(error, "problem_mark", None)
    before = text.encode()[: getattr(error, "position", 0)]
    line = mark.line + 1 if mark else before.count(b"\n") + 1
    where = f"{path}:{line}"
    said = getattr(error, "problem", None) or str(error).splitlines()[0]
    return SpecError(f"not valid YAML: {said}", where=where, hint="check quotes and indentation")


def _whole(number: int) -> int:
    if number.bit_length() > 1024:  # in hex there is no limit, yet Python would not write it
        raise ValueError("no count is that large")
    return number


class _Reader:
    """Turns a node tree into plain data and remembers where each value stood."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[Loc, int] = {}
        self._seen: set[int] = set()

    def where(self, loc: Loc) -> str:
        while loc and loc not in self._lines:
            loc = loc[:-1]
        return f"{self._path}:{self._lines.get(loc, 1)}"

    def value(self, node: Any, loc: Loc) -> Any:
        if id(node) in self._seen:  # the node's own line is where its anchor stands
            raise SpecError(
                "aliases are not supported", where=self.where(loc), hint="write the value out"
            )
        line = node.start_mark.line + 1
        self._lines.setdefault(loc, line)
        self._seen.add(id(node))
        if len(loc) > MAX_DEPTH:
            self._refuse("nested too deeply", line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*loc, i)) for i, child in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: Any, loc: Loc) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self._refuse("a key should be a plain word", line)
            name = str(key.value)
            if name in found:
                self._refuse(f"`{name}` stands here twice", line, "remove one of them")
            self._lines[*loc, name] = line
            found[name] = self.value(child, (*loc, name))
        return found

    def _scalar(self, node: Any, line: int) -> Any:
        try:
            match node.tag.removeprefix(_TAG):
                case "null":
                    return None
                case "bool":
                    return _SCALARS.construct_yaml_bool(node)
                case "int":
                    return _whole(_SCALARS.construct_yaml_int(node))
                case "float":
                    return _SCALARS.construct_yaml_float(node)
                case "str" | "timestamp":
                    return node.value
                case _:
                    pass
        except (ValueError, KeyError, IndexError):  # as yaml has it for `!!bool x`, `!!int ''`
            pass
        return self._refuse(f"a value of kind {node.tag} is not supported", line)

    def _refuse(self, message: str, line: int, hint: str = "") -> Any:
        raise SpecError(message, where=f"{self._path}:{line}", hint=hint)
