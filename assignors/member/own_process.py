"""The process to which a started member belongs."""

import os

from assignors.errors import MembershipError


class OwnProcess:
    """Recognizes a child that was forked from the process of a started member: no thread of the member runs there.

    A member that is not started may be started in a child.
    """

    def __init__(self) -> None:
        self._process: int | None = None

    def begin(self) -> None:
        """Note that this process starts the member, unless another one has."""
        if self._process is None:
            self._process = os.getpid()

    def end(self) -> None:
        """Note that the member is not started."""
        self._process = None

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that started the member."""
        return self._process is not None and self._process != os.getpid()

    def error(self) -> MembershipError:
        """Return the error for calls in a child."""
        return MembershipError(
            f"this member belongs to process {self._process}, this process is its child {os.getpid()}: make a member "
            "after the fork"
        )

    def check(self) -> None:
        """Raise MembershipError in a child."""
        if self.forked:
            raise self.error()
