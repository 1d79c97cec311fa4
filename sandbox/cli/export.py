"""stillroom export: what other tools read, made of runs and tasks. One command for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sandbox.cli import trajectories
from sandbox.cli.options import AsJson, SuiteName, Tasks

app = typer.Typer(
    help="Write files that other tools read.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
trajectories.add_to(app)

Run = Annotated[Path, typer.Argument(help="A run's folder.")]
Folder = Annotated[Path, typer.Option("--out", "-o", help="A new folder.")]


@app.command("leaderboard")
def leaderboard(
    run: Run,
    *,
    out: Folder,
    name: Annotated[str, typer.Option(help="What is to stand on the leaderboard.")],
    site: Annotated[str, typer.Option(help="A link to whoever made it.")] = "",
    oss: Annotated[bool, typer.Option("--oss", help="It is open source.")] = False,
    model: Annotated[
        str | None, typer.Option(help="Whose patches, where the run has several models'.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write a run as an entry of a SWE-bench leaderboard.

    all_preds.jsonl, metadata.yaml, README.md, results/results.json, logs/ and trajs/, with a .traj of
    SWE-agent's form for each instance; of which there is none, is said. Of several attempts at an
    instance, the first counts.

    \b
    Examples:
      stillroom export leaderboard runs/mine --name "My agent" --out evaluation/lite/20260101_mine
    """
    from sandbox.adapters.leaderboard import Entry, export_leaderboard
    from sandbox.cli import options
    from sandbox.cli.output import print_json

    entry = Entry(name=name, site=site, oss=oss, model=model)
    done = export_leaderboard(run, out, entry, options.catalogue().load)
    if as_json:
        written = [str(path) for path in done.written]
        print_json({"written": written, "without_trajectory": dict(done.untold)})
    else:
        print("\n".join([*map(str, done.written), *done.lacks]))
    return 0


Prefix = Annotated[str, typer.Option("--image-prefix", help="What docker_image begins with.")]
Network = Annotated[
    str, typer.Option(help="Of the tasks there: no-network, as it is here, or public.")
]
Images = Annotated[
    Path | None, typer.Option("--images", help="A folder for the images: docker load -i FILE.")
]


@app.command("harbor")
def harbor(
    tasks: Tasks = None,
    *,
    suite: SuiteName = None,
    out: Folder,
    image_prefix: Prefix = "stillroom/",
    network: Network = "no-network",
    images: Images = None,
    as_json: AsJson = False,
) -> int:
    """Write tasks as Harbor's, which other trainers and harnesses read, too.

    Each names an image, and has a Dockerfile with the same packages. tests/test.sh writes
    reward.json and ctrf.json. What cannot be taken along is listed: there a verdict is made in the
    agent's own container, by the machine's clock.

    \b
    Examples:
      stillroom export harbor click-8.1.3 --out harbor
      stillroom export harbor --suite core --out harbor --images images
    """
    from sandbox.adapters.harbor.exporting import export_all
    from sandbox.cli import options
    from sandbox.cli.output import print_json
    from sandbox.cli.progress import ProgressObserver
    from sandbox.errors import UserError
    from sandbox.runtime.supplies import Depot

    if network not in ("no-network", "public"):
        raise UserError(f"--network {network} is none of no-network, public")
    chosen = options.catalogue().choose(suite, tuple(tasks or ()))
    with ProgressObserver(quiet=as_json) as observer:
        depot = Depot(options.store(), observer.preparing)
        made = list(
            export_all(chosen, depot, out, prefix=image_prefix, network=network, images=images)
        )
    for one in made:
        if as_json:
            print_json(one)
            continue
        print(f"{one.folder}: {one.image}")
        for row in one.rows:
            print(f"  {row.fate} {row.field}: {row.note}")
    return 0
