"""The partitions that a member owns: a value, and the cell that shares it between threads."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from assignors.errors import NotOwnedError
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The partitions that this member owns, and its state in the group.

    Attributes:
        version: grows with each change of any other attribute.
        generation: generation of the group, -1 if this member is in no group.
        member_id: assigned by the broker, empty if it assigned none.
        partitions: owned now. A partition is owned until the callback of its revocation has returned.
        joined: no rebalance is in progress as far as this member knows.
    """

    version: int = 0
    generation: int = -1
    member_id: str = ""
    partitions: frozenset[TopicPartition] = field(default=frozenset())
    joined: bool = False

    def plus(self, given: Iterable[TopicPartition], generation: int) -> "Ownership":
        """Return a copy with these partitions added, in that generation."""
        return self._changed(partitions=self.partitions | frozenset(given), generation=generation)

    def minus(self, taken: Iterable[TopicPartition]) -> "Ownership":
        """Return a copy without these partitions; a rebalance removes them, and its end assigns others or the same."""
        return self._changed(partitions=self.partitions - frozenset(taken), joined=False)

    def outside(self) -> "Ownership":
        """Return the ownership of a member outside any group."""
        return self._changed(partitions=frozenset(), joined=False, generation=-1)

    def standing(self, *, generation: int, member_id: str, joined: bool) -> "Ownership":
        """Return a copy with this state in the group."""
        return self._changed(generation=generation, member_id=member_id, joined=joined)

    def check_owns(self, partitions: Collection[TopicPartition]) -> None:
        """Check that this member owns all of these, before it commits them.

        Raises:
            NotOwnedError: it does not own one of them.
        """
        if foreign := set(partitions) - self.partitions:
            topic, partition = min(foreign)
            more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
            raise NotOwnedError(
                f"this member does not own {topic!r} partition {partition}{more}: "
                "nothing was committed; commit before its revocation ends, at the latest in the callback"
            )

    def _changed(self, **values: object) -> "Ownership":
        if all(getattr(self, name) == value for name, value in values.items()):
            return self
        return replace(self, version=self.version + 1, **values)  # type: ignore[arg-type]  # names are this class's own


class OwnershipCell:
    """The newest ownership, for all threads.

    Contract:
    * Reading never waits for the network.
    * Changes happen one after another; `wait` sees each state that lasts.

    Args:
        on_change: called after each change, in the thread of the change; it must not wait. Its error is logged: the
            changes of a rebalance must not stop halfway.
    """

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self._on_change = on_change
        self._changed = threading.Condition()
        self._value = Ownership()
        self._failed: BaseException | None = None

    @property
    def value(self) -> Ownership:
        """The current ownership."""
        return self._value

    @property
    def failed(self) -> BaseException | None:
        """The error that ended the membership, None while it continues."""
        return self._failed

    def change(self, how: Callable[[Ownership], Ownership]) -> None:
        """Replace the value by the result of `how`."""
        with self._changed:
            before, self._value = self._value, how(self._value)
            self._changed.notify_all()
        if self._value is not before:
            self._report_change()

    def fail(self, error: BaseException) -> None:
        """End the membership, without partitions. The first error remains."""
        with self._changed:
            self._failed = self._failed or error
            self._value = self._value.outside()
            self._changed.notify_all()
        self._report_change()

    def wait(self, fits: Callable[[Ownership], bool], timeout_s: float) -> Ownership | None:
        """Return the first value that fits; None if there is none in time, or the membership ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._failed is not None or fits(self._value), timeout_s)
            return self._value if fits(self._value) else None

    def _report_change(self) -> None:
        try:
            self._on_change()
        except BaseException:  # sys.exit() too: it would end a thread of the membership
            log.exception("on_change %r failed", self._on_change)
