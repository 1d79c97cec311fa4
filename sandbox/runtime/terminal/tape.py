"""Who may record a terminal. All methods do nothing: `formats.asciicast.Cast` has the same ones."""


class Tape:
    def output(self, data: bytes) -> None:
        """Something was printed."""

    def typed(self, data: bytes) -> None: ...

    def marker(self, label: str) -> None:
        """An action begins."""

    def resized(self, rows: int, cols: int) -> None: ...
