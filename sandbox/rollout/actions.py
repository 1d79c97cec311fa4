"""An agent's line of JSON as an action, strictly: what is not known is no guess of ours."""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from sandbox.errors import AgentFault
from sandbox.model.step import Action, Keys, ModelCall, Run, Signal, Submit, Until, Wait

LOOKED_FOR_CHARS, NAMED_KEYS = 1000, 1000
_MOST = 1 << 53
"""Whole numbers beyond it are not the same to everybody who reads JSON."""
_HINT = "see docs/reference/agent-protocol.md"
T = TypeVar("T")
Reader = Callable[[Any], Any]
"""Raises _Wrong."""


class _Wrong(Exception):
    """Says what it should have been."""


def read_action(line: bytes) -> Action:
    """Raises AgentFault: trying again would change nothing."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise _fault(f"the agent wrote what is not JSON: {line[:200]!r}") from e
    kind = said.get("type") if isinstance(said, dict) else None
    if not isinstance(kind, str) or kind not in _ACTIONS:
        known = ", ".join(_ACTIONS)
        raise _fault(f"the agent wrote what is no action ({known}): {line[:200]!r}")
    shape, needed, readers = _ACTIONS[kind]
    found = {}
    for key, value in said.items():
        if key == "type":
            continue
        if key not in readers:
            near = get_close_matches(key, readers, n=1)
            known = (
                f"did you mean `{near[0]}`?" if near else f"known: {', '.join(readers) or 'none'}"
            )
            raise _fault(f"the agent's `{kind}`: unknown key `{key[:100]}`; {known}")
        try:
            found[key] = readers[key](value)
        except _Wrong as e:
            raise _fault(
                f"the agent's `{kind}`: `{key}` should be {e}, not {_shown(value)}"
            ) from None
    for key in needed:
        if key not in found:
            raise _fault(f"the agent's `{kind}`: `{key}` is missing")
    return shape(**{k: v for k, v in found.items() if v is not None})


def _fault(message: str) -> AgentFault:
    return AgentFault(message, hint=_HINT, retry=False)


def _shown(value: Any) -> str:
    try:
        return repr(value)[:200]
    except RecursionError:
        return "something nested so deeply"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("a string")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise _Wrong("a number above 0 and below 1,000,000")
    return float(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Wrong("a list of strings")
    if len(value) > NAMED_KEYS:
        raise _Wrong(f"{NAMED_KEYS} keys at most")
    return tuple(value)


def _looked_for(value: Any) -> str:
    text = _text(value)
    if len(text) > LOOKED_FOR_CHARS:
        raise _Wrong(f"{LOOKED_FOR_CHARS} characters at most")
    return text


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise _Wrong("a whole number, 0 or more")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST < value < _MOST:
        raise _Wrong("a number")
    return float(value)


def _cost(value: Any) -> float:
    if (found := _number(value)) < 0:
        raise _Wrong("a number, 0 or more")
    return found


def _all(read: Callable[[Any], T], what: str) -> Callable[[Any], tuple[T, ...]]:
    def read_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise _Wrong(f"a list of {what}")
        try:
            return tuple(map(read, value))
        except _Wrong:
            raise _Wrong(f"a list of {what}") from None

    return read_all


def _model(value: Any) -> ModelCall:
    """As an agent tells it, or not at all: half of it would be a guess."""
    if not isinstance(value, dict):
        raise _Wrong("an object")
    found = {}
    for key, said in value.items():
        if key not in _MODEL:
            raise _Wrong(f"an object with keys of {', '.join(_MODEL)} only")
        try:
            found[key] = _MODEL[key](said)
        except _Wrong as e:
            raise _Wrong(f"an object whose `{key}` is {e}") from None
    return _agreeing(ModelCall(**{k: v for k, v in found.items() if v is not None}))


def _agreeing(call: ModelCall) -> ModelCall:
    ids, chances = call.completion_token_ids, call.logprobs
    if ids is not None and chances is not None and len(ids) != len(chances):
        raise _Wrong("an object with a `logprobs` for each of `completion_token_ids`")
    return call


def _one_of(*names: str) -> Reader:
    def read(value: Any) -> Any:
        if value not in names:
            raise _Wrong("one of " + ", ".join(names))
        return value

    return read


def _or_null(read: Reader) -> Reader:
    """Null is as good as nothing said."""
    return lambda value: None if value is None else read(value)


_COUNTS = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")
_IDS = _or_null(_all(_count, "whole numbers, 0 or more"))
_MODEL: Mapping[str, Reader] = {
    **dict.fromkeys(("name", "message", "reasoning"), _or_null(_text)),
    **dict.fromkeys(_COUNTS, _or_null(_count)),
    "cost_usd": _or_null(_cost),
    **dict.fromkeys(("prompt_token_ids", "completion_token_ids"), _IDS),
    "logprobs": _or_null(_all(_number, "numbers")),
}
_TOLD: Mapping[str, Reader] = {"model": _or_null(_model)}
_LOOKING: Mapping[str, Reader] = {
    "seconds": _or_null(_seconds),
    "until": _one_of(*get_args(Until)),
    "text": _or_null(_looked_for),
    "fold": _flag,
    "screen": _flag,
}
_ACTIONS: Mapping[str, tuple[Callable[..., Action], tuple[str, ...], Mapping[str, Reader]]] = {
    "run": (
        Run,
        ("command",),
        {
            "command": _text,
            "seconds": _or_null(_seconds),
            "tty": _flag,
            "stdin": _or_null(_text),
            "on_timeout": _one_of("interrupt", "keep"),
            "fold": _flag,
            "screen": _flag,
            **_TOLD,
        },
    ),
    "keys": (Keys, (), {"keys": _text, "named": _names, **_LOOKING, **_TOLD}),
    "wait": (Wait, (), {**_LOOKING, **_TOLD}),
    "signal": (
        Signal,
        ("name",),
        {
            "name": _text,
            "target": _one_of("foreground", "session"),
            "seconds": _or_null(_seconds),
            "screen": _flag,
            **_TOLD,
        },
    ),
    "submit": (Submit, (), _TOLD),
}
