"""XML from a box: no DTD, no entities of its own, bounded in depth and number."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from sandbox.formats.logs.sighting import UnreadableLog

_DEEPEST, _MOST_ELEMENTS = 100, 2_000_000


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    children: "list[Element]" = field(default_factory=list)

    def within(self, tag: str) -> "Iterator[Element]":
        """All of that name below, in order."""
        for child in self.children:
            if child.tag == tag:
                yield child
            yield from child.within(tag)


def read(document: str | bytes) -> Element:
    """The elements and their attributes; texts are dropped. Raises UnreadableLog."""
    parser = expat.ParserCreate()
    root = Element("", {})
    above, count = [root], 0

    def began(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(above) > _DEEPEST or count > _MOST_ELEMENTS:
            raise UnreadableLog(
                f"XML with more than {_DEEPEST} levels or {_MOST_ELEMENTS} elements"
            )
        element = Element(tag.rpartition(":")[2], attributes)
        above[-1].children.append(element)
        above.append(element)

    def ended(tag: str) -> None:
        del tag
        above.pop()

    def refused(*told: object) -> None:
        del told
        raise UnreadableLog("XML that declares a document type or entities is not read")

    parser.StartElementHandler, parser.EndElementHandler = began, ended
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refused
    try:
        parser.Parse(document, True)  # noqa: FBT003 - expat's own signature
    except (expat.ExpatError, LookupError, ValueError) as e:
        if isinstance(e, UnreadableLog):
            raise
        raise UnreadableLog(f"broken XML: {e}") from None
    return root.children[0]
