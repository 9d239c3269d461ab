"""What the job loop works with: claims, tables, logs and a cluster, each as little of it as the loop needs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from assignors.claims import Claim, Lease, Visit
from assignors.fleet import FleetTopic, Sighting
from spark_sink.fleet.write_queue import Tables, TopicIds
from spark_sink.ranges.batch_offset import Range, TopicPartition


class Claims(Protocol):
    """What the loop needs of `PartitionClaims`."""

    lease: Lease

    def register(self, partitions: Iterable[tuple[str, int]]) -> int:
        """Make partitions known."""

    def known(self) -> set[tuple[str, int]]:
        """The partitions that are registered."""

    def forget(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Remove partitions."""

    def claim(self, most: int) -> list[Claim]:
        """Claim partitions."""

    def commit(self, offsets: Mapping[Claim, int]) -> None:
        """Say how far partitions have come."""

    def renew(self, claims: Iterable[Claim]) -> list[Claim]:
        """Renew leases; those still held."""

    def disown(self, visits: Mapping[Claim, Visit]) -> list[Claim]:
        """Give partitions back."""

    def close(self) -> None:
        """Disown what is held."""


class Writer(Tables, Protocol):
    """What the loop needs of `TableWriter`."""

    def label(self, topics: Collection[FleetTopic]) -> dict[FleetTopic, str]:
        """What each topic is called in its table; of one table."""

    def positions(self, labels: Collection[str]) -> dict[TopicPartition, int]:
        """How far the table of these labels has come."""


class Ends(Protocol):
    """What the loop needs of `PartitionOffsets`."""

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The exclusive end of each log."""

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each log."""

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the loop works with.

    Attributes:
        claims: of this job; the loop closes them.
        writer: of the tables.
        logs: how far the logs go.
        topics: asks the cluster for the topics; raises AssignorError where no broker answers.
        fetch: reads ranges.
        ids: asks the cluster for the ids of topics as they are now.
    """

    claims: Claims
    writer: Writer
    logs: Ends
    topics: Callable[[], Sighting]
    fetch: Callable[[Sequence[Range]], Iterator[pa.RecordBatch]]
    ids: TopicIds
