"""Writes the pages of docs/reference/ that are made from the code: run it after a change there.

    .venv/bin/python ci/docs.py

Keys and their meanings come from `stillroom schema`, options from `stillroom VERB --help`.
tests/unit/test_docs.py fails when a committed page differs from what this renders.
"""

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from sandbox.audit.gate.finding import RULES
from sandbox.cli.app import app
from sandbox.cli.schema import Which, schema
from sandbox.formats.exploitfile import load_corpus

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
_COLUMNS = 80
_NOTICE = "<!-- Made by ci/docs.py; do not edit. -->"
_PROCESSORS = re.compile(r"\[default: \d; 1<=x<=256\]")
Schema = dict[str, Any]


def pages() -> dict[Path, str]:
    """Every generated page, by path."""
    rendered = {REFERENCE / f"{w.value}.md": schema_page(w) for w in Which}
    return rendered | {
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "exploits.md": exploits_page(),
        REFERENCE / "findings.md": findings_page(),
    }


def findings_page() -> str:
    told = (
        "What `stillroom check` can find out about a task. An error keeps it out: exit code 1. "
        "Ids stay; where OpenEnv's RFC 008 has one for it, it is that one. "
        "How to go about them: [Admit a task](../how-to/admit-a-task.md)."
    )
    rows = ["| id | severity | meaning | what to do |", "|---|---|---|---|"]
    rows += [f"| `{r.id}` | {r.severity} | {r.means} | {_one_line(r.hint)} |" for r in RULES]
    return "\n\n".join(["# Findings", _NOTICE, told, "\n".join(rows)]) + "\n"


def exploits_page() -> str:
    corpus = load_corpus()
    told = (
        f"{len(corpus.exploits)} exploits in {len(corpus.titles)} families: what an agent may do to be paid"
        " for nothing. Each is performed through the terminal of a real box, and must be worth no more"
        " than doing nothing. How to add one: [CONTRIBUTING](../../CONTRIBUTING.md)."
    )
    scopes = (
        "Scope: what is attacked. `repo`: the tests' own process, by the submission; `env`: the agent's"
        " box; `shell`: the terminal; `collector`: what reads the submission; `host`: the machine."
        " `detected`: with all layers, the verdict says so. BGW: its class in the list of `bohrin`."
    )
    parts = ["# Exploits", _NOTICE, told, scopes]
    for family, title in corpus.titles.items():
        rows = [
            "| exploit | what it does | scope | expected | BGW | source |",
            "|---|---|---|---|---|---|",
        ]
        for one in (e for e in corpus.exploits if e.family == family):
            bgw = str(one.bgw or "")
            cells = (f"`{one.id}`", one.title, one.scope, one.expect, bgw, one.source)
            rows.append("| " + " | ".join(_one_line(c).replace("|", "\\|") for c in cells) + " |")
        parts += [f"## {family}", f"{title}.", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def schema_page(which: Which) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        schema(which)
    found: Schema = json.loads(said.getvalue())
    kinds: dict[str, Schema] = found.get("$defs", {})
    told = f"As JSON Schema, for editors and validators: `stillroom schema {which.value}`."
    if found.get("additionalProperties") is False:
        told += " An unknown key is an error."
    parts = [f"# {_one_line(found['title'])}", _NOTICE, told, *_about(found), _table(found)]
    for name in _in_order(found, kinds):
        shape = kinds[name]
        parts += [
            f"## {name}",
            *_about(shape),
            _values(shape) if "enum" in shape else _table(shape),
        ]
    return "\n\n".join(parts) + "\n"


def _about(shape: Schema) -> Iterator[str]:
    if said := shape.get("description"):
        yield _one_line(said)


def _values(shape: Schema) -> str:
    return "One of " + ", ".join(f"`{v}`" for v in shape["enum"]) + "."


def _table(shape: Schema) -> str:
    rows = ["| key | kind | default | meaning |", "|---|---|---|---|"]
    for key, value in shape["properties"].items():
        default = "required" if key in shape.get("required", ()) else _default(value)
        meaning = _one_line(value.get("description", ""))
        cells = (f"`{key}`", _kind(value), default, meaning)
        rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(rows)


def _default(value: Schema) -> str:
    if "default" not in value:  # made anew each time, so it is no part of the schema
        return "its own defaults" if "$ref" in value else "empty"
    found = value["default"]
    return "none" if found is None else f"`{json.dumps(found)}`"


def _kind(value: Schema) -> str:
    match value:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": list(options)}:
            return " or ".join(_kind(o) for o in options if o.get("type") != "null")
        case {"const": constant}:
            return f"`{json.dumps(constant)}`"
        case {"enum": list(values)}:
            return " or ".join(f"`{v}`" for v in values)
        case {"type": "array", "items": items}:
            found = f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": dict(inner)}:
            found = f"mapping: name to {_kind(inner)}"
        case _:
            found = str(value.get("type", "anything"))
    return found


def _in_order(shape: Schema, kinds: dict[str, Schema]) -> list[str]:
    """The named shapes, in the order in which a reader meets them."""
    found: list[str] = []
    for name in re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(shape.get("properties", {}))):
        for each in (name, *_in_order(kinds[name], kinds)):
            if each not in found:
                found.append(each)
    return found


def _one_line(text: str) -> str:
    """`<name>` outside of code would be taken for a tag."""
    return " ".join(text.split()).replace("<", "&lt;").replace(">", "&gt;")


def cli_page() -> str:
    command: Any = typer.main.get_command(app)
    top = command.context_class(
        command, info_name="stillroom", terminal_width=_COLUMNS, **command.context_settings
    )
    told = (
        "What `stillroom --help` and `stillroom VERB --help` print. "
        "Exit codes: see [results](results.md#exit-codes)."
    )
    parts = ["# The command line", _NOTICE, told, _fenced(command.get_help(top))]
    parts += _verbs(command, top)
    return "\n\n".join(parts) + "\n"


def _verbs(command: Any, above: Any) -> Iterator[str]:
    """Each verb of a group, and of the groups in it."""
    for name, verb in command.commands.items():
        # The mark before examples keeps their lines; it is no part of the text.
        verb.help = (verb.help or "").replace("\\b\n", "\b\n")
        context = verb.context_class(verb, info_name=name, parent=above, terminal_width=_COLUMNS)
        yield f"## {context.command_path}"
        yield _fenced(verb.get_help(context))
        if hasattr(verb, "commands"):
            yield from _verbs(verb, context)


def _fenced(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    body = _PROCESSORS.sub("[default: processors, at most 4; 1<=x<=256]", "\n".join(lines))
    return f"```text\n{body}\n```"


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
