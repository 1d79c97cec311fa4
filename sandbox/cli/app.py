"""All verbs, in the order in which help shows them."""

import typer

from sandbox._version import __version__
from sandbox.cli import (
    certify,
    check,
    doctor,
    explain,
    export,
    grade,
    import_,
    list_,
    lock,
    new,
    play,
    record,
    run,
    schema,
    show,
    submit,
)

app = typer.Typer(
    name="stillroom",
    help="Pinned worlds for coding agents, and verdicts that stay the same.",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001 - typer calls it so
    if value:
        print(f"stillroom {__version__}")
        raise typer.Exit


@app.callback()
def stillroom(
    *,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Pinned worlds for coding agents, and verdicts that stay the same."""
    del version


app.command("run")(run.run)
app.command("grade")(grade.grade)
app.command("submit")(submit.submit)
app.command("play")(play.play)
app.command("list")(list_.list_tasks)
app.command("show")(show.show)
app.command("explain")(explain.explain)
app.command("check")(check.check)
app.command("certify")(certify.certify)
app.command("new")(new.new)
app.command("schema")(schema.schema)
app.add_typer(import_.app, name="import")
app.add_typer(export.app, name="export")
app.command("lock")(lock.lock)
app.command("record")(record.record)
app.command("doctor")(doctor.doctor)
