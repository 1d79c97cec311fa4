"""Who is asked for an answer, in which order, and what is said when nobody has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandbox.runtime.network.asked import described, key_of
from sandbox.runtime.network.message import REFUSAL, Request, Response, is_refusal

REFUSED = 403
"""Not one of the 5xx: npm, uv, pip and apt ask again for those, for seconds or minutes, and what is
not recorded will not be there then. 404 would be an answer: it says that there is no such thing."""
PHRASE = "Not recorded"
Ask = Callable[[Request], Response | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`event`: a word of the log."""

    event: str
    response: Response
    source: str = ""
    phrase: str = ""


class NoAnswer(Exception):
    """There would be an answer, but it cannot be had; the reason is told."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where answers come from. `event`: what its answers count as in the log."""

    name: str
    event: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Answers:
    """`cassette`: its name, for people. `remedy`: what they can do about a refusal."""

    sources: Sequence[Source]
    cassette: str
    remedy: str

    def to(self, request: Request) -> Outcome:
        """Never raises for what a request says; always has an answer."""
        for source in self.sources:
            try:
                response = source.ask(request)
            except NoAnswer as e:
                return self.refusal(request, str(e))
            if response is not None:
                event = "refused" if is_refusal(response) else source.event
                return Outcome(event, response, source.name)
        return self.refusal(request, "is not recorded")

    def refusal(self, request: Request, why: str) -> Outcome:
        text = (
            f"stillroom: refused: {described(request)} {why}\n"
            f"  cassette: {self.cassette}\n"
            f"  key: {key_of(request)}\n"
            f"  {self.remedy}\n"
        )
        headers = (
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Cache-Control", "no-store"),
            REFUSAL,
        )
        response = Response(REFUSED, headers, text.encode("utf-8", "backslashreplace"))
        return Outcome("refused", response, phrase=PHRASE)
