"""A group that is a few dictionaries, and a planner of its batches."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.source.record_sizes import RecordSizes
from spark_sink.source.trigger_steps import BatchPlanner
from tests.known_positions import known_positions

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BASE = {"kafka.bootstrap.servers": "x:1", "kafka.group.id": "g", "subscribePattern": ".*"}
LIMITED = {"maxOffsetsPerTrigger": "50"}


@dataclass
class Group:
    """A group of one member."""

    held: Assignment = field(default_factory=Assignment)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)
    last: dict[TopicPartition, int] = field(default_factory=dict)
    times: dict[TopicPartition, int | None] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    member: bool = True
    rebalancing: bool = False

    def give(self, *keys: TopicPartition, step: int = 1) -> None:
        """Rebalance."""
        self.held = Assignment(generation=self.held.generation + step, partitions=frozenset(keys))

    def assignment(self, timeout_s: float) -> Assignment:
        """Join, and answer at once."""
        assert timeout_s > 0
        self.member = True
        return self.held

    def commit(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Take offsets of what is held, and the first offset of what is not."""
        assert not (positions.keys() - self.held.partitions) & self.offsets.keys(), "other members' offsets stay"
        if not self.rebalancing:
            self.offsets.update(positions)
        return not self.rebalancing

    def begin_commit(self, positions: Mapping[TopicPartition, int]) -> Callable[[], bool]:
        """Commit at once."""
        committed = self.commit(positions)
        return lambda: committed

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer from the group."""
        return {key: self.offsets[key] for key in keys if key in self.offsets}

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer from the logs."""
        return {key: self.first.get(key, 0) for key in keys}

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer for the logs whose leader is there."""
        return {key: self.last[key] for key in keys if key in self.last}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Answer from the table of times."""
        return {key: self.times.get(key) for key in times_ms}

    def subscribed(self) -> set[TopicPartition]:
        """Answer every partition that has a log."""
        return set(self.last)

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """Answer for the topics that have an id."""
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def leave(self) -> None:
        """Leave."""
        self.member = False


class Clock:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.now += seconds


def feed(
    group: Group,
    table: Mapping[TopicPartition, int] | None = None,
    clock: Clock | None = None,
    sizes: RecordSizes | None = None,
    paused: Callable[[], Collection[str] | None] = tuple,
    **options: str,
) -> BatchPlanner:
    """A reader of that group."""
    clock = clock or Clock()
    positions = None if table is None else partial(known_positions, table)
    parsed = SourceOptions.parse({**BASE, **options})
    parts: dict[str, Any] = {"sizes": sizes, "paused": paused, "clock": clock, "sleep": clock.sleep}
    return BatchPlanner(parsed, group, positions=positions, **parts)


def ranges(offset: Offset) -> dict[TopicPartition, tuple[int, int]]:
    """Begin and end by partition."""
    return {one.key: (one.begin, one.end) for one in offset}
