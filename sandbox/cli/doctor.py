"""stillroom doctor: what works here."""

from typing import Annotated

import typer

from sandbox.cli.options import AsJson

Reap = Annotated[bool, typer.Option("--reap", help="Remove what dead runs left behind.")]


def doctor(*, reap: Reap = False, as_json: AsJson = False) -> int:
    """Say what works on this machine, what is missing, and how to mend it.

    Exit code 1 when no runtime works.

    \b
    Examples:
      stillroom doctor
      stillroom doctor --reap
    """
    from sandbox.audit.doctor import examine, leftovers
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.cli.progress import ProgressObserver

    store = options.store()
    if reap:
        gone = leftovers(store)
        if as_json:
            print_json({"removed": gone})
        else:
            print("\n".join(f"removed {what}" for what in gone) or "nothing was left behind")
        return 0
    working = False
    with ProgressObserver(quiet=as_json) as observer:
        for found in examine(store, observer.preparing):
            working |= found.ok and found.name in ("embedded", "docker")
            if as_json:
                print_json(found)
                continue
            print(f"{'ok  ' if found.ok else 'NOT '} {found.name:<9} {found.found}", flush=True)
            if not found.ok and found.mend:
                print(f"     {'':<9} → {found.mend}", flush=True)
    return 0 if working else 1
