"""One rollout as its events tell it: what the formats that others read are written from."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from sandbox.errors import SpecError
from sandbox.formats.shape import parse
from sandbox.model.record import Rollout
from sandbox.model.step import Keys, ModelCall, Run, Signal, Submit, Wait

TOKENS = ("prompt_token_ids", "completion_token_ids", "logprobs")
_ACTIONS = {"run": Run, "keys": Keys, "wait": Wait, "signal": Signal, "submit": Submit}
_DEFAULTS: dict[str, dict[str, Any]] = {
    name: {f.name: None if f.default is MISSING else f.default for f in fields(kind)}
    for name, kind in _ACTIONS.items()
}
_HALF = re.compile("[\ud800-\udfff]")
_DEEP = "nested too deeply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of an action."""

    output: str
    status: str
    exit_code: int | None
    time: float
    """Seconds since the rollout began."""
    seconds: float | None
    more: Mapping[str, Any]
    """The other keys of an observation that say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An action, and what came of it."""

    step: int
    time: float
    action: str
    arguments: Mapping[str, Any]
    """As in the agent protocol; what is not said has its default."""
    said: Mapping[str, Any]
    """`bytes` and `sha256` of what the box was told."""
    model: ModelCall | None
    seen: Seen | None
    """None: a submit, or the rollout ended with it."""

    @property
    def is_sampled(self) -> bool:
        """Did a model choose it, as far as the agent told?"""
        return self.model is not None and self.model.calls != 0

    @property
    def tokens(self) -> dict[str, list[Any]]:
        """Ids and log probabilities that were told, by name; never others."""
        told = ((name, getattr(self.model, name, None)) for name in TOKENS)
        return {name: list(ids) for name, ids in told if ids is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Its texts are whole: bytes that are no UTF-8, and half characters, stand as escapes."""

    rollout: Rollout
    turns: tuple[Turn, ...]
    patch: bytes | None = None
    """None: there is none, or it is not at hand."""
    instruction: str | None = None
    """None: it was not recorded."""
    workdir: str = ""

    @property
    def name(self) -> str:
        return f"{self.rollout.task}.{self.rollout.attempt}"

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were named, in order."""
        named = (turn.model.name for turn in self.turns if turn.model and turn.model.name)
        return tuple(dict.fromkeys(named))

    @property
    def steps(self) -> int:
        """Actions in the box. The result of a void rollout counts none."""
        return sum(turn.action != "submit" for turn in self.turns)

    def at(self, seconds: float) -> str | None:
        """An instant of the rollout in UTC; None where its beginning is no instant."""
        try:
            began = datetime.fromisoformat(self.rollout.started)
            when = began + timedelta(seconds=seconds)
        except (ValueError, OverflowError):
            return None
        return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def epoch(self, seconds: float) -> float | None:
        """The same in seconds since 1970."""
        said = self.at(seconds)
        return datetime.fromisoformat(said).timestamp() if said else None


def read_trajectory(
    rollout: Rollout, events: Iterable[Mapping[str, Any]], where: str, patch: bytes | None = None
) -> Trajectory:
    """Raises SpecError with file and line; `where` is the file."""
    turns: list[Turn] = []
    task: Mapping[str, Any] = {}
    for number, raw in enumerate(events, 1):
        try:
            event = _Event(clean(raw), f"{where}:{number}")
        except RecursionError:
            raise SpecError(_DEEP, where=f"{where}:{number}") from None
        match event.data.get("type"):
            case "task":
                task = {"instruction": event.text("instruction"), "workdir": event.text("workdir")}
            case "action":
                turns.append(_turn(event))
            case "observation":
                _add(turns, event)
            case _:
                pass  # a person's part has no steps
    return Trajectory(rollout=rollout, turns=tuple(turns), patch=patch, **task)


def shown(seen: Seen) -> str:
    """In one text, for formats that have no other place; a plain exit 0 goes without saying."""
    notes = list(_notes(seen))
    if not notes:
        return seen.output
    return "\n".join([seen.output.removesuffix("\n"), *notes] if seen.output else notes)


def _notes(seen: Seen) -> Iterator[str]:
    if background := seen.more.get("background"):
        yield f"[in the background]\n{background}"
    match seen.more.get("screen"):
        case {"lines": [*lines]}:
            yield "\n".join(["[the screen]", *map(str, lines)])
        case _:
            pass
    facts = [] if seen.status == "exited" else [seen.status]
    facts += [] if seen.exit_code in (0, None) else [f"exit code {seen.exit_code}"]
    facts += [str(seen.more["limit"])] if "limit" in seen.more else []
    if facts:
        yield f"[{', '.join(facts)}]"


def outcome(told: Trajectory) -> dict[str, Any]:
    """How it was judged, and on what: for formats that have a place for more."""
    r = told.rollout
    verdict, fault = r.verdict, r.fault
    found: dict[str, Any] = {
        "task": r.task,
        "task_digest": r.task_digest,
        "attempt": r.attempt,
        "agent": r.agent,
        "runtime": r.runtime,
        "started": r.started,
        "ending": r.ending.value if r.ending else None,
        "reward": r.reward,
        "resolved": verdict.resolved if verdict else None,
        "reason": verdict.reason if verdict else "",
        "flags": list(verdict.flags) if verdict else [],
        "checks": dict(verdict.checks) if verdict else {},
        "fault": None,
        "network": r.network,
        "seconds": dict(r.seconds),
        "patch_sha256": r.patch_sha256,
    }
    if fault:
        found["fault"] = {"code": fault.code, "message": fault.message, "retry": fault.retry}
    if r.warning:
        found["warning"] = r.warning
    return found


def patch_text(patch: bytes | None) -> dict[str, str]:
    """As in submissions.jsonl: text where it is text."""
    if patch is None:
        return {}
    try:
        return {"patch": patch.decode()}
    except UnicodeDecodeError:
        return {"patch_base64": base64.b64encode(patch).decode()}


def total(told: Trajectory, what: str) -> Any:
    """Of what an agent told of its models; None where it told nothing."""
    values = [getattr(turn.model, what) for turn in told.turns if turn.model]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def whole(text: str) -> str:
    r"""Without half characters, which UTF-8 cannot say: a byte as \xff, the rest as \ud800."""
    return _HALF.sub(_escaped, text)


def clean(value: Any) -> Any:
    """Plain data as every reader of JSON takes it; what is no number is null."""
    match value:
        case str():
            return whole(value)
        case float() if not isfinite(value):
            return None
        case dict():
            return {whole(str(name)): clean(one) for name, one in value.items()}
        case list() | tuple():
            return [clean(one) for one in value]
        case _:
            return value


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


@dataclass(frozen=True, slots=True)
class _Event:
    data: Mapping[str, Any]
    where: str

    def text(self, name: str) -> str:
        value = self.data.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def number(self, name: str) -> float:
        value = self.data.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise self.wrong(name, "a number, 0 or more")
        return float(value)

    def whole(self, name: str) -> int:
        value = self.data.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, "a whole number")
        return value

    def wrong(self, name: str, what: str) -> SpecError:
        return SpecError(f"`{name}` should be {what}", where=self.where)


def _turn(event: _Event) -> Turn:
    action = event.text("action")
    if action not in _DEFAULTS:
        raise event.wrong("action", f"one of {', '.join(_DEFAULTS)}")
    defaults = _DEFAULTS[action]
    arguments = {
        name: event.data[name]
        for name, default in defaults.items()
        if name != "model" and event.data.get(name) not in (None, default, [])
    }
    if action in ("run", "signal"):
        needed = "command" if action == "run" else "name"
        arguments[needed] = event.text(needed)
    return Turn(
        step=event.whole("step"),
        time=event.number("time"),
        action=action,
        arguments=arguments,
        said={name: event.data[name] for name in ("bytes", "sha256") if event.data.get(name)},
        model=_model(event),
        seen=None,
    )


def _model(event: _Event) -> ModelCall | None:
    told = event.data.get("model")
    if told is None:
        return None
    if isinstance(told, dict) and None in (told.get("logprobs") or ()):
        told = {**told, "logprobs": None}  # one of them was no number: the rest are not enough
    return parse(told, ModelCall, lambda _: event.where)


def _add(turns: list[Turn], event: _Event) -> None:
    if not turns or turns[-1].step != event.whole("step") or turns[-1].seen:
        raise SpecError("an observation of no action", where=event.where)
    own = ("output", "status", "exit_code", "seconds")
    head = ("seq", "time", "type", "step")
    more = {
        name: value
        for name, value in event.data.items()
        if name not in (*own, *head) and value not in (None, "", 0, False, [])
    }
    seconds = event.data.get("seconds")
    seen = Seen(
        output=event.text("output"),
        status=event.text("status"),
        exit_code=None if event.data.get("exit_code") is None else event.whole("exit_code"),
        time=event.number("time"),
        seconds=None if seconds is None else event.number("seconds"),
        more=more,
    )
    turns.append(replace(turns.pop(), seen=seen))
