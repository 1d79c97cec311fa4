"""Every error we raise on purpose.

StillroomError
  UserError         the command line, or a file the user wrote           exit 2
    SpecError       a file of the user's, with file and line
    NothingSelected no task matches                                      exit 4
  Fault             our world broke: void, never a score                 exit 3
    ImageFault      an image cannot be had as pinned
    RepoFault       a repository cannot be had as pinned
    RuntimeFault    the container engine, or a box that is gone
    TerminalFault   the shell in a box cannot be started or reached
    AgentFault      the agent's own program failed, not its work
    VerifierFault   the verifier could not give evidence
    NetworkFault    a download failed
"""

from typing import ClassVar, Literal

FaultCode = Literal["image", "repo", "runtime", "terminal", "agent", "verifier", "judge", "network"]


class StillroomError(Exception):
    """Catch this to catch all of ours and none of Python's."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UserError(StillroomError):
    code = "user"
    exit_status = 2


class SpecError(UserError):
    """`where` is a file, or file:line."""

    code = "spec"

    def __init__(self, message: str, *, where: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}", hint=hint)
        self.where = where


class NothingSelected(UserError):
    code = "nothing-selected"
    exit_status = 4


class Fault(StillroomError):
    """Something of ours failed. `retry`: would a second try make sense?"""

    code: ClassVar[FaultCode]
    exit_status = 3

    def __init__(self, message: str, *, hint: str = "", retry: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.retry = retry


class ImageFault(Fault):
    code = "image"


class RepoFault(Fault):
    code = "repo"


class RuntimeFault(Fault):
    code = "runtime"


class TerminalFault(Fault):
    code = "terminal"


class AgentFault(Fault):
    code = "agent"


class VerifierFault(Fault):
    code = "verifier"


class NetworkFault(Fault):
    code = "network"
