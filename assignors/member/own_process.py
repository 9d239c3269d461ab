"""The process to which a started member, or a call of a consumer, belongs."""

import os
from typing import ClassVar

from assignors.errors import MembershipError


class OwnProcess:
    """Recognizes a child that was forked from the process of a started member: no thread of the member runs there.

    A member that is not started may be started in a child.

    Attributes:
        owner: what belongs to the process, for messages.
        refusal: the error of calls in a child.
        process: the process's id; None before the start.
    """

    owner: ClassVar[str] = "member"
    refusal: ClassVar[type[Exception]] = MembershipError

    def __init__(self) -> None:
        self.process: int | None = None

    def begin(self) -> None:
        """Note that this process starts the member, unless another one has."""
        if self.process is None:
            self.process = os.getpid()

    def end(self) -> None:
        """Note that the member is not started."""
        self.process = None

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that started the member."""
        return self.process is not None and self.process != os.getpid()

    def error(self) -> Exception:
        """Return the error for calls in a child."""
        return self.refusal(
            f"this {self.owner} belongs to process {self.process}, this process is its child {os.getpid()}: "
            f"make a {self.owner} after the fork"
        )

    def check(self) -> None:
        """Raise `refusal` in a child."""
        if self.forked:
            raise self.error()
