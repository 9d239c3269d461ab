"""Asks the questions of a check at the same time, each with a time limit, and returns their answers as a list."""

import enum
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from spark_sink.errors import LaterError

LIMIT_S: Final = 3.5
"""Longest time for all questions together; the rest of five seconds is for the start of the process."""
SLOW_S: Final = 1.0


class State(enum.Enum):
    """The outcome of one question."""

    OK = "ok"
    FAULT = "fault"
    LATER = "later"
    """A fault that may end without a change of the settings, such as a topic that does not exist yet."""
    SKIPPED = "skipped"
    """Not asked, because the question that must come first is not `OK`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question.

    Attributes:
        subject: one or two words, unique in a list of checks.
        place: the place that is asked, for the message if it does not answer.
        ask: returns a sentence about the place; raises an error whose message is the fault.
        after: subject of the check that must be `OK` before this one is asked.
    """

    subject: str
    place: str
    ask: Callable[[], str]
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer to one question.

    Attributes:
        subject: that of the check.
        state: the outcome.
        text: one sentence; for a fault, it names the place and what to do.
        seconds: duration of the question.
    """

    subject: str
    state: State
    text: str
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether this is a fault; `LATER` counts as one."""
        return self.state in {State.FAULT, State.LATER}

    def line(self, width: int = 10) -> str:
        """Return one line for a terminal; a slow answer is marked.

        Args:
            width: of the longest subject.
        """
        slow = f" (slow: {self.seconds:.1f} s)" if self.state is State.OK and self.seconds >= SLOW_S else ""
        state = State.FAULT if self.bad else self.state
        return f"{state.value:<8} {self.subject:<{width}}  {self.text}{slow}"


def run(checks: Sequence[Check], limit_s: float = LIMIT_S) -> list[Finding]:
    """Ask all questions, and return the findings in the order of the checks.

    Threads of questions without an answer continue; they do not keep the process alive.

    Args:
        checks: the questions.
        limit_s: longest time for all questions together.
    """
    until = time.monotonic() + limit_s
    answers: dict[str, Future[Finding]] = {one.subject: Future() for one in checks}
    for one in checks:
        threading.Thread(target=_answer, args=(one, answers), name=f"check {one.subject}", daemon=True).start()
    return [_taken(one, answers, until, limit_s) for one in checks]


def _answer(check: Check, answers: Mapping[str, Future[Finding]]) -> None:
    if check.after is not None and (before := answers[check.after].result()).state is not State.OK:
        answers[check.subject].set_result(_skipped(check, before.subject))
        return
    began = time.monotonic()
    state, text = State.OK, ""
    try:
        text = check.ask()
    except LaterError as error:
        state, text = State.LATER, str(error)
    except Exception as error:  # noqa: BLE001 -- a question that fails unexpectedly must not look unanswered
        ours = type(error).__module__.split(".")[0] in {"assignors", "spark_sink"}
        state, text = State.FAULT, str(error) if ours else f"{check.place}: {type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    found = Finding(subject=check.subject, state=state, text=" ".join(text.split()), seconds=seconds)
    answers[check.subject].set_result(found)


def _taken(check: Check, answers: Mapping[str, Future[Finding]], until: float, limit_s: float) -> Finding:
    try:
        return answers[check.subject].result(max(0.0, until - time.monotonic()))
    except TimeoutError:
        if check.after is not None and not answers[check.after].done():
            return _skipped(check, check.after)
        text = f"{check.place}: no answer in {limit_s:g} s: it is slow, or cannot be reached; check its address"
        return Finding(subject=check.subject, state=State.LATER, text=text, seconds=limit_s)


def _skipped(check: Check, before: str) -> Finding:
    return Finding(subject=check.subject, state=State.SKIPPED, text=f"not asked, because of {before!r}")
