"""stillroom list: which tasks there are."""

from sandbox.cli.options import AsJson, SuiteName, Tasks


def list_tasks(tasks: Tasks = None, *, suite: SuiteName = None, as_json: AsJson = False) -> int:
    """List tasks: all, those of a suite, or those that match patterns.

    \b
    Examples:
      stillroom list
      stillroom list --suite core
      stillroom list 'jinja2-*' --json
    """
    from sandbox.cli import options
    from sandbox.cli.output import print_json, print_table
    from sandbox.report.tables import tasks_table

    shelf = options.catalogue()
    patterns = tuple(tasks or ()) or (() if suite else ("*",))
    chosen = shelf.choose(suite, patterns)
    suites = {name: [str(t) for t in found.tasks] for name, found in shelf.suites().items()}
    if as_json:
        for task in chosen:
            print_json(
                {
                    "id": task.id,
                    "digest": task.digest,
                    "category": task.metadata.category,
                    "difficulty": task.metadata.difficulty,
                    "licence": task.metadata.licence,
                    "checks": len(task.verifier.checks),
                    "suites": sorted(n for n, ids in suites.items() if task.id in ids),
                }
            )
    else:
        print_table(tasks_table(chosen, suites))
    return 0
