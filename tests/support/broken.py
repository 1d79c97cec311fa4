"""Runtimes that do not keep the contract, each in its own way: they run nothing, on purpose."""

from collections.abc import Sequence
from typing import Any

from sandbox.errors import RuntimeFault
from sandbox.runtime.base import ExecResult
from sandbox.runtime.fake import FakeBox, FakeRuntime
from sandbox.runtime.spec import BoxSpec
from sandbox.runtime.store import Store


class Fake(FakeRuntime):
    """Made from a store, as runtimes are that have a name."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store


class Forgetful(Fake):
    """Its boxes say what they are asked to print, lose what they are given, and fail loudly."""

    def create(self, spec: BoxSpec) -> FakeBox:
        return _Forgetful("forgetful", spec, self._reply, self.create)


class _Forgetful(FakeBox):
    def exec(self, argv: Sequence[str], **options: Any) -> ExecResult:
        if self._destroyed:
            raise RuntimeFault("it is gone")
        if argv[0] == "sh":
            raise ZeroDivisionError("a bug of this runtime's")
        return ExecResult(exit_code=0, stdout=" ".join(argv[1:]).encode() + b"\n", stderr=b"")

    def put(self, archive: bytes, folder: str) -> None:
        del archive, folder


class Unmakeable:
    def __init__(self, store: Store) -> None:
        raise OSError(f"no engine for {store.root}")


class Unclosable(Fake):
    def close(self) -> None:
        raise OSError("the engine does not let go")
