"""What an assignor knows of the consumer that it serves: kafka-python passes it neither consumer nor generation."""

import os
import weakref
from dataclasses import dataclass, field
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.clients.kafka_python_internals import assignors_of, is_closed, owned_by
from assignors.errors import MembershipError
from assignors.planner.topics_and_members import TopicPartition
from assignors.protocol.rebalance_trigger import Rejoin


class OfMember:
    """State that belongs to the consumer of an assignor. A copy of the assignor gets a new one, without arguments."""

    __slots__ = ()


@dataclass(slots=True)
class ServedConsumer(OfMember):
    """The consumer of an assignor, and what it was assigned.

    Attributes:
        owned: the last assignment, in its generation.
        generation: -1 before the first.
        warned: the subjects of earlier warnings.
        withheld: on the leader, the partitions without an owner in this round.
        follow_up: requests the second round.
        coordinator: kafka-python's, a weak reference.
        process: in which the consumer joined.
    """

    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    warned: set[str] = field(default_factory=set)
    withheld: set[TopicPartition] = field(default_factory=set)
    follow_up: Rejoin | None = None
    coordinator: "weakref.ref[Any] | None" = None
    process: int = 0

    def serve(self, assignor: AbstractPartitionAssignor, coordinator: Any) -> None:  # noqa: ANN401 -- kafka-python is untyped
        """Serve this consumer.

        Raises:
            MembershipError: another one that is not closed joined with this assignor. The claims of the second would
                replace those of the first, and both would lose partitions.
        """
        served = self._alive()
        if coordinator is None or coordinator is served:
            return
        if served is not None and not is_closed(served):
            raise MembershipError(
                f"one instance of {type(assignor).__name__} was given to two consumers, of groups "
                f"{served.group_id!r} and {coordinator.group_id!r}: make one for each consumer"
            )
        if self.coordinator is not None:
            self.owned, self.generation = (), -1
        self.coordinator, self.process = weakref.ref(coordinator), os.getpid()

    @property
    def serves(self) -> bool:
        """Whether a consumer that is not closed joined with this assignor."""
        served = self._alive()
        return served is not None and not is_closed(served)

    def claims(self, coordinator: Any) -> tuple[tuple[TopicPartition, ...], int]:  # noqa: ANN401 -- as above
        """Return what the consumer owns, and since which generation.

        kafka-python passes assignments only to the assignor that the group has chosen. If it was another one, this one
        must claim what its consumer reads: a cooperative leader would give unclaimed partitions to other members.
        """
        if coordinator is None:
            return self.owned, self.generation
        owned, generation = owned_by(coordinator)
        if not owned:  # it has lost them: a claim of what it had may bring them back
            return self.owned, self.generation
        if set(owned) == set(self.owned):
            return self.owned, max(self.generation, generation)
        return owned, generation

    def assignors(self) -> list[Any]:
        """Return all assignors of the consumer."""
        return list(assignors_of(self._alive()).values())

    def _alive(self) -> Any:  # noqa: ANN401 -- as above
        # A forked child has only a copy of the consumer, which does nothing there.
        return self.coordinator() if self.coordinator is not None and self.process == os.getpid() else None
