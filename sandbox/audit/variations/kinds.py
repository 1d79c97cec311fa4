"""The kinds of variation, by name. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sandbox.audit.source.trees import Files, Source
from sandbox.audit.variations import additions, layout, naming, shape
from sandbox.audit.variations.module import everywhere

Apply = Callable[[Source], Files | None]


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    apply: Apply
    """None where it finds nothing to vary."""


@dataclass(frozen=True, slots=True)
class Variation:
    kind: str
    files: Files


_SINGLE = (
    Kind("reformatted", everywhere(layout.reformatted)),
    Kind("uncommented", everywhere(layout.uncommented)),
    Kind("commented", everywhere(layout.commented)),
    Kind("undocumented", everywhere(layout.unexplained)),
    Kind("trailing-spaces", everywhere(layout.trailing_spaces)),
    Kind("windows-line-ends", everywhere(layout.windows_line_ends)),
    Kind("no-last-line-end", everywhere(layout.no_last_line_end)),
    Kind("byte-order-mark", everywhere(layout.byte_order_mark)),
    Kind("tabs", everywhere(layout.tabs)),
    Kind("spread-out", everywhere(layout.spread_out)),
    Kind("renamed-locals", everywhere(naming.renamed_locals)),
    Kind("renamed-helpers", everywhere(naming.renamed_helpers)),
    Kind("inverted-branches", everywhere(shape.inverted)),
    Kind("no-early-return", everywhere(shape.no_early_return)),
    Kind("format-calls", everywhere(shape.formatted)),
    Kind("untyped", everywhere(shape.untyped)),
    Kind("named-results", everywhere(shape.named_results)),
    Kind("swapped-choices", everywhere(shape.chosen_otherwise)),
    Kind("de-morgan", everywhere(shape.parted)),
    Kind("constants-extracted", everywhere(shape.constants_extracted)),
    Kind("inner-functions", everywhere(shape.wrapped)),
    Kind("reordered", everywhere(shape.reordered)),
    Kind("helper-functions", everywhere(additions.helper_functions)),
    Kind("vendored-helper", additions.vendored_helper),
    Kind("more-files", additions.more_files),
    Kind("more-tests", additions.more_tests),
    Kind("executable", additions.executable),
    Kind("unused-class", everywhere(additions.unused_class)),
    Kind("dead-code", everywhere(additions.dead_code)),
    Kind("decorated", everywhere(additions.decorated)),
    Kind("slow", everywhere(additions.slow)),
    Kind("imported-otherwise", everywhere(additions.imported_otherwise)),
)
_BY_NAME = {k.name: k.apply for k in _SINGLE}


def together(*names: str) -> Apply:
    """One after the other; each works on what the one before it left."""

    def apply(source: Source) -> Files | None:
        files = source.solved
        for name in names:
            files = _BY_NAME[name](Source(source.base, files, source.tests)) or files
        return files

    return apply


KINDS = (
    *_SINGLE,
    Kind(
        "rebuilt-throughout",
        together(
            "imported-otherwise",
            "renamed-helpers",
            "reordered",
            "renamed-locals",
            "inverted-branches",
            "no-early-return",
            "format-calls",
            "untyped",
            "swapped-choices",
            "de-morgan",
            "named-results",
            "constants-extracted",
            "inner-functions",
            "commented",
            "windows-line-ends",
        ),
    ),
    Kind(
        "laid-out-and-added-to",
        together(
            "uncommented",
            "undocumented",
            "spread-out",
            "commented",
            "trailing-spaces",
            "vendored-helper",
            "dead-code",
            "unused-class",
            "decorated",
            "slow",
            "more-files",
            "more-tests",
            "executable",
            "tabs",
            "no-last-line-end",
            "byte-order-mark",
        ),
    ),
)
CONTROLS = (
    "reformatted",
    "uncommented",
    "renamed-locals",
    "renamed-helpers",
    "helper-functions",
    "constants-extracted",
    "more-files",
)
"""What every task must accept before it is admitted."""


def variations(source: Source, names: tuple[str, ...] = ()) -> Iterator[Variation]:
    """Each kind that finds something to vary; all of them if none is named."""
    for kind in KINDS:
        if names and kind.name not in names:
            continue
        files = kind.apply(source)
        if files is not None and files != source.solved:
            yield Variation(kind.name, files)
