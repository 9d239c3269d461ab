"""A consumer group in memory: generations, assignments that lag behind, and offsets fenced by the generation."""

from collections.abc import Callable, Iterable, Mapping

from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition
from tests.simulation.scheduler import Scheduler

TOPIC = "t"


class Coordinator:
    """The group's coordinator, and the logs of the topic.

    Args:
        scheduler: draws who gets what at a rebalance.
        ends: of the logs; they grow.
    """

    def __init__(self, scheduler: Scheduler, ends: dict[TopicPartition, int]) -> None:
        self.scheduler = scheduler
        self.ends = ends
        self.offsets: dict[TopicPartition, int] = {}
        self.generation = 0
        self.members: dict[int, frozenset[TopicPartition]] = {}

    def join(self, member: int) -> None:
        """A member comes."""
        self.members[member] = frozenset()
        self.rebalance()

    def drop(self, member: int) -> None:
        """A member leaves, or its session ends."""
        if self.members.pop(member, None) is not None:
            self.rebalance()

    def rebalance(self) -> None:
        """Give each partition to one of the members."""
        self.generation += 1
        held: dict[int, set[TopicPartition]] = {member: set() for member in self.members}
        for key in self.ends if held else ():
            held[self.scheduler.random.choice(list(held))].add(key)
        self.members = {member: frozenset(keys) for member, keys in held.items()}
        self.scheduler.note(
            f"  generation {self.generation}: " + str([sorted(k.partition for k in v) for v in held.values()])
        )


class Member:
    """One member; keeps the contract of `Membership`.

    Args:
        coordinator: of the group.
        number: of the member, never used again.
    """

    def __init__(self, coordinator: Coordinator, number: int) -> None:
        self._group, self._number = coordinator, number
        self._last = Assignment()

    def assignment(self, timeout_s: float) -> Assignment:
        """The current assignment, or the last one where no heartbeat has said yet that it is over."""
        del timeout_s
        if self._group.scheduler.point("ask for the assignment", "old answer") == "old answer":
            return self._last
        if self._number not in self._group.members:
            self._group.join(self._number)
        self._last = Assignment(generation=self._group.generation, partitions=self._group.members[self._number])
        return self._last

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets, in the current generation only."""
        fault = self._group.scheduler.point("commit offsets to the group", "refused")
        if fault == "refused" or self._last.generation != self._group.generation:
            return False
        self._group.offsets.update(positions)
        return True

    def begin_commit(self, positions: Mapping[TopicPartition, int]) -> Callable[[], bool]:
        """Commit at once."""
        committed = self.commit(positions)
        return lambda: committed

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of the group."""
        self._group.scheduler.point("read the group's offsets")
        return {key: self._group.offsets[key] for key in keys if key in self._group.offsets}

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Logs begin at 0."""
        return dict.fromkeys(keys, 0)

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Ends of logs; now and then a partition has no leader."""
        if self._group.scheduler.point("read the ends of the logs", "no leader") == "no leader":
            return {}
        return {key: self._group.ends[key] for key in keys}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """No schedule begins by time."""
        return dict.fromkeys(times_ms)

    def subscribed(self) -> set[TopicPartition]:
        """All partitions."""
        return set(self._group.ends)

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """The topic is never recreated."""
        return dict.fromkeys(topics, "cluster/topic")

    def leave(self) -> None:
        """Leave the group."""
        self._group.drop(self._number)
