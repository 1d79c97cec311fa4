"""Who may watch a run. All methods do nothing: override what you want to see."""

from sandbox.model.record import Rollout
from sandbox.model.step import Step
from sandbox.model.task import TaskId


class Observer:
    """Called from several threads."""

    def preparing(self, text: str, done: int, total: int) -> None:
        """Fetching and building, before the first rollout."""

    def noted(self, text: str) -> None:
        """Something that a person should know, before the first rollout."""

    def planned(self, total: int, finished: int) -> None:
        """How many rollouts there are, and how many had ended before."""

    def started(self, task: TaskId, attempt: int) -> None: ...

    def stepped(self, task: TaskId, attempt: int, step: Step) -> None: ...

    def phase(self, task: TaskId, attempt: int, name: str) -> None:
        """box, agent, collect or verify has begun."""

    def retried(self, rollout: Rollout) -> None:
        """It was void, and is run again."""

    def ended(self, rollout: Rollout) -> None: ...
