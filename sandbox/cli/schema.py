"""stillroom schema: JSON Schema for editors."""

import json
from enum import StrEnum
from typing import Annotated

import typer


class Which(StrEnum):
    TASK = "task"
    CHECKS = "checks"
    RECIPE = "recipe"
    REPOS = "repos"
    ROLLOUT = "rollout"
    SUBMISSION = "submission"
    CERTIFICATE = "certificate"


Name = Annotated[Which, typer.Argument(help="Which file or line.")]


def schema(which: Name = Which.TASK) -> int:
    """Print the JSON Schema of a file, for editors and validators.

    \b
    Examples:
      stillroom schema task > task.schema.json
      stillroom schema rollout
    """
    from sandbox.audit.certify.certificate import Certificate
    from sandbox.formats.checksfile import ChecksFile
    from sandbox.formats.records import SubmissionLine
    from sandbox.formats.repofile import RepoLock
    from sandbox.formats.shape import schema_of
    from sandbox.formats.taskfile import TaskFile
    from sandbox.model.image import ImageRecipe
    from sandbox.model.record import Rollout

    shapes = {
        Which.TASK: (TaskFile, "Stillroom task: task_specs/<id>/task.yaml"),
        Which.CHECKS: (ChecksFile, "Stillroom checks: verifiers/<id>/checks.yaml"),
        Which.RECIPE: (ImageRecipe, "Stillroom image: repos/images/<name>.yaml"),
        Which.REPOS: (RepoLock, "Stillroom repositories: repos/lock.yaml"),
        Which.ROLLOUT: (Rollout, "Stillroom rollout: a line of results.jsonl"),
        Which.SUBMISSION: (SubmissionLine, "Stillroom submission: a line of submissions.jsonl"),
        Which.CERTIFICATE: (Certificate, "Stillroom certificate: certificates/<id>.json"),
    }
    shape, title = shapes[which]
    print(json.dumps(schema_of(shape, title), indent=1))
    return 0
