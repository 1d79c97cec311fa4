"""Names of tests under headings that are only set apart by their indentation."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Outline:
    """The headings above the line that is being read."""

    _above: list[tuple[str, int]] = field(default_factory=list)

    def see(self, line: str) -> None:
        """A line that is no test: a heading, when it is indented at all."""
        indent = len(line) - len(line.lstrip())
        if not indent:
            return
        while self._above and self._above[-1][1] >= indent:
            self._above.pop()
        self._above.append((line.strip(), indent))

    @property
    def headings(self) -> list[str]:
        return [heading for heading, _ in self._above]
