"""The agent's actions as tools, in the manner of OpenAI's function calling."""

import json
from collections.abc import Mapping
from typing import Any

from sandbox.formats.trajectory import Turn

_TEXT, _FLAG, _NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "number"}
_LOOK: Mapping[str, Any] = {
    "seconds": _NUMBER,
    "until": {"type": "string", "enum": ["quiet", "input", "exit"]},
    "text": _TEXT,
    "fold": _FLAG,
    "screen": _FLAG,
}
_TOOLS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "run": (
        "Run a command line in the persistent shell.",
        {
            "command": _TEXT,
            "seconds": _NUMBER,
            "tty": _FLAG,
            "stdin": _TEXT,
            "on_timeout": {"type": "string", "enum": ["interrupt", "keep"]},
            "fold": _FLAG,
            "screen": _FLAG,
        },
        ("command",),
    ),
    "keys": (
        "Type into whatever is in the foreground, then look.",
        {"keys": _TEXT, "named": {"type": "array", "items": _TEXT}, **_LOOK},
        (),
    ),
    "wait": ("Look at what runs, without typing.", _LOOK, ()),
    "signal": (
        "Send a signal to what runs.",
        {
            "name": _TEXT,
            "target": {"type": "string", "enum": ["foreground", "session"]},
            "seconds": _NUMBER,
            "screen": _FLAG,
        },
        ("name",),
    ),
    "submit": ("Done: what lies in the declared paths is the submission.", {}, ()),
}


def tools() -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": told,
                "parameters": {
                    "type": "object",
                    "properties": dict(properties),
                    "required": list(required),
                },
            },
        }
        for name, (told, properties, required) in _TOOLS.items()
    ]


def call_id(turn: Turn) -> str:
    return f"call-{turn.step}"


def call(turn: Turn) -> dict[str, Any]:
    """Within a message of the assistant."""
    function = {"name": turn.action, "arguments": spoken(turn)}
    return {"id": call_id(turn), "type": "function", "function": function}


def spoken(turn: Turn) -> str:
    """The arguments, as a model would write them."""
    return json.dumps(dict(turn.arguments), ensure_ascii=False, allow_nan=False)
