"""The parts of the job loop: claims, tables, logs and a cluster, each reduced to the methods that the loop needs."""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from assignors.claims import Claim, Lease, Visit
from assignors.fleet import FleetTopic, Sighting
from assignors.scaling import WorkersRecord
from spark_sink.fleet.write_queue import Tables, TopicIds
from spark_sink.ranges.batch_offset import Range, TopicPartition


class Claims(Protocol):
    """The methods of `PartitionClaims` that the loop needs."""

    lease: Lease

    def register(self, partitions: Iterable[tuple[str, int]]) -> int:
        """Make partitions known."""

    def known(self) -> set[tuple[str, int]]:
        """The partitions that are registered."""

    def forget(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Remove partitions."""

    def hasten(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Make partitions due now."""

    def claim(self, most: int) -> list[Claim]:
        """Claim partitions."""

    def commit(self, offsets: Mapping[Claim, int]) -> None:
        """Commit the positions of partitions."""

    def renew(self, claims: Iterable[Claim]) -> list[Claim]:
        """Renew leases; return the claims that are still held."""

    def disown(self, visits: Mapping[Claim, Visit] | Collection[Claim]) -> list[Claim]:
        """Release partitions; those without a visit stay due."""

    def close(self) -> None:
        """Disown all partitions."""


class Writer(Tables, Protocol):
    """The methods of `TableWriter` that the loop needs."""

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """Return the label of each topic in its table; all of one table."""

    def positions(self, labels: Collection[str]) -> dict[TopicPartition, int]:
        """Return the positions in the table of these labels."""


class Ends(Protocol):
    """The methods of `PartitionOffsets` that the loop needs."""

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the exclusive end of each log."""

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParts:
    """The parts of the job loop.

    Attributes:
        claims: claims of this job; the loop closes them.
        writer: writes the tables.
        logs: reads the ends of the logs.
        topics: requests the topics from the cluster; raises AssignorError if no broker answers.
        fetch: reads ranges; records of a partition come in the order of their offsets.
        ids: requests the current ids of topics from the cluster.
        numbers: returns the published records of the workers topic, by topic; none if the job does not follow it.
        hint: commits positions to the group in Kafka, from which the autoscaler computes the lag; never fails.
        paused: returns the topics that are not read for now; None while they are not known, and then none is read.
    """

    claims: Claims
    writer: Writer
    logs: Ends
    topics: Callable[[], Sighting]
    fetch: Callable[[Sequence[Range]], Generator[pa.RecordBatch, None, None]]
    ids: TopicIds
    paused: Callable[[], Collection[str] | None] = tuple
    numbers: Callable[[], Mapping[str, WorkersRecord]] = dict
    hint: Callable[[Mapping[TopicPartition, int]], None] = lambda _: None
