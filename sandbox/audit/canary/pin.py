"""What a task's layers were found to be, as files, and pinned in its task.yaml."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from sandbox.audit.canary.find import Found
from sandbox.errors import UserError
from sandbox.formats import jsonfile, yamlfile
from sandbox.formats.layerfile import CANARIES, PLAIN, file_digest, layer_path, written
from sandbox.model.layers import Canaries, Layer, Plain
from sandbox.model.task import TaskSpec
from sandbox.rollout.observer import Observer
from sandbox.runtime.base import Runtime
from sandbox.runtime.supplies import Depot

_KEYS = ("layers", "canaries", "plain")
_OF: Mapping[str, tuple[Layer, ...]] = {"canaries": ("canary",), "plain": ("withheld", "plain")}
"""File → the layers that it is for."""
_BLOCK = re.compile(r"(?m)^verifier:[ \t]*(?:#.*)?\n((?:[ \t]+.*\n|[ \t]*\n|#.*\n)+)")
_OURS = re.compile(rf"^[ \t]+(?:{'|'.join(_KEYS)}):(?![ \t]*$)")


def find_plain_run(
    task: TaskSpec, depot: Depot, runtime: Runtime, observer: Observer
) -> Plain | None:
    from sandbox.audit.plain.find import find_plain  # noqa: PLC0415 - slow to load

    found: Plain = find_plain(task, depot, runtime, observer)
    return found


def said(task: TaskSpec, found: Found) -> Iterator[str]:
    """What a person should know of it."""
    canaries, checks = found.canaries, task.verifier.checks
    covered = len(canaries.canary_of())
    loose = sum(len(unit.loose) for unit in canaries.units)
    share = 100 * covered / len(checks)
    yield f"{task.id}: {covered} of {len(checks)} checks have a canary ({share:.1f} %)"
    yield f"  {len(canaries.units)} units, {loose} loose checks, {found.rounds} rounds"
    for why, count in Counter(canaries.uncovered.values()).most_common():
        yield f"  {count} without: {why}"


def pin_layers(task: TaskSpec, canaries: Canaries | None, plain: Plain | None) -> list[Path]:
    """Write what was found, and pin it; returns the files that changed. The same is the same bytes.

    None: nobody looked for it, and it stays as it was. Raises UserError when task.yaml cannot be
    edited by lines.
    """
    changed = []
    layers, pins = set(task.verifier.layers), dict[str, str]()
    kept = {"canaries": task.verifier.canaries, "plain": task.verifier.plain}
    for name, made, key in ((CANARIES, canaries, "canaries"), (PLAIN, plain, "plain")):
        if made is None:
            if pin := kept[key]:
                pins[key] = pin
            continue
        path, text = layer_path(task, name), written(made)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            jsonfile.write(path, text)
            changed.append(path)
        layers = layers - set(_OF[key]) | _layers_of(made)
        if set(_OF[key]) & layers:
            pins[key] = file_digest(path)
    named = [layer for layer in ("canary", "withheld", "plain") if layer in layers]
    path = Path(task.home) / "task_specs" / task.id / "task.yaml"
    before = yamlfile.read_text(path)
    after = with_layers(before, {"layers": f"[{', '.join(named)}]"} | pins, str(path))
    if after != before:
        jsonfile.write(path, after)
        changed.append(path)
    return changed


def _layers_of(made: Canaries | Plain) -> set[Layer]:
    """What a verdict can rest on, of what was found."""
    if isinstance(made, Canaries):
        return {"canary"} if made.units else set()
    found: set[Layer] = {"withheld"} if made.sites else set()
    return found | ({"plain"} if made.checks else set())


def with_layers(text: str, pins: Mapping[str, str], where: str) -> str:
    """A task.yaml with these keys of `verifier`, and everything else as it was. Raises UserError."""
    if not text.endswith("\n"):
        text += "\n"
    found = _BLOCK.search(text)
    if found is None:
        raise UserError(f"{where}: `verifier` is not written one key a line", hint="write it so")
    lines = found[1].splitlines(keepends=True)
    first = next(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    indent = first[: len(first) - len(first.lstrip())]
    kept = [
        line
        for line in lines
        if not (_OURS.match(line) and line.startswith(indent) and line[len(indent)] not in " \t")
    ]
    end = len(kept)
    while end and not (kept[end - 1].strip() and kept[end - 1][0] in " \t"):
        end -= 1
    kept[end:end] = [f"{indent}{key}: {pins[key]}\n" for key in _KEYS if key in pins]
    return text[: found.start(1)] + "".join(kept) + text[found.end(1) :]
