"""The surface of `quick_step_compiled.pyx` without a C compiler: each step is one for RecordSteps.

RecordSteps does all that the step in C does.
"""

from confluent_kafka import Message

TAKES_RECORDS = False


class Readiness:
    """Whether a quick step may run: never, so `state` stays 0; and how many calls wait for the gate."""

    __slots__ = ("state", "waiting")

    def __init__(self) -> None:
        self.state = 0
        self.waiting = 0


class QuickStep:
    """Takes no records."""

    __slots__ = ("delivered_at",)

    def __init__(self, *_: object, **_settings: object) -> None:
        self.delivered_at = 0.0

    def arm(self, size: int, now: float, commit_at: float) -> None:
        """Change nothing."""

    def takes(self, size: int) -> bool:  # noqa: ARG002 -- as the compiled one
        """Return False: it was not armed."""
        return False

    def take(self, found: list[Message], *_: float) -> list[Message]:
        """Return no more records: this is a step for RecordSteps."""
        return found
