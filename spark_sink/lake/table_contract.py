"""What the sink needs of a lake table: a few values and one Protocol. Delta is the first to keep it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from spark_sink.ranges.batch_offset import TopicPartition


class Span(NamedTuple):
    """The rows of one partition in one file: lowest and highest offset, both included, and how many rows."""

    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file that was written and that no table knows yet.

    Attributes:
        path: relative to the table.
        size_bytes: of the file.
        spans: what it holds, by partition. A partition may lie in several files of a batch.
        partition_values: of the table's partition columns, as text.
        stats: the statistics as the table format wants them, JSON.
        written_ms: when it was closed, since 1970.
    """

    path: str
    size_bytes: int
    spans: Mapping[TopicPartition, Span]
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    stats: str = "{}"
    written_ms: int = 0

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return sum(span.rows for span in self.spans.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """The bad rows of one commit: data files of the quarantine, which a commit of the table names.

    The quarantine is a table of its own, and two tables have no commit in common. So the commit of the table alone
    decides which rows are bad, and the quarantine adds these files afterwards, at any time and by any writer.

    Attributes:
        files: of the quarantine.
        ends: the table's next offset by partition after this commit, for partitions that have bad rows.
        before: the same of the commit before that had bad rows of the partition; none for the first.
    """

    files: Sequence[DataFile]
    ends: Mapping[TopicPartition, int]
    before: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table at one version.

    Attributes:
        version: counts up with each commit.
        positions: the group's next offset by partition, at exactly this version.
        schema: the columns.
        replays: how often records were brought in from the quarantine.
        identities: which topic of each name the rows are of, where a writer says so.
        quarantined: the table's next offset, by partition, after the newest commit that named bad rows of it.
    """

    version: int
    positions: Mapping[TopicPartition, int]
    schema: pa.Schema
    replays: int = 0
    identities: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One commit: files to add and positions to set, all or nothing.

    Attributes:
        files: to add.
        positions: the new next offset, by partition.
        beginnings: where the group begins, for partitions that had no position.
        schema: the columns of the files.
        note: goes into the table's history, as JSON.
        replays: the new number of replays; None where the change is none.
        identities: which topic of each name the rows will be of.
        quarantined: the bad rows that belong to this commit; None for none.
    """

    files: Sequence[DataFile]
    positions: Mapping[TopicPartition, int]
    beginnings: Mapping[TopicPartition, int]
    schema: pa.Schema
    note: Mapping[str, object] = field(default_factory=dict)
    replays: int | None = None
    identities: Mapping[str, int] = field(default_factory=dict)
    quarantined: Quarantined | None = None


class Table(Protocol):
    """A lake table that can be compared and swapped, for one consumer group.

    Contract:
    * `refresh` gives one version as a whole: positions and schema belong together.
    * `swap` succeeds only if, since that snapshot, nobody set a position (or an identity, or the number of replays)
      that the change sets, and nobody changed the columns; else it raises ConflictError and has changed nothing.
      Appends to other partitions do not matter.
    * An error of `swap` may hide a commit that went through; the caller refreshes and compares to find out.
    * Nothing here deletes a data file. Calls may block on storage; one thread at a time.
    """

    @property
    def name(self) -> str:
        """How messages call the table."""

    def refresh(self) -> Snapshot | None:
        """The newest version; None where there is no table."""

    def create(self, schema: pa.Schema) -> None:
        """Make the table; quietly nothing where another writer was faster."""

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        """Commit the change on top of the snapshot, or raise ConflictError."""

    def filtered(self, file: DataFile, floors: Mapping[TopicPartition, int]) -> DataFile | None:
        """Copy the rows at or above the floor of their partition into a new file; None where no row is left."""

    def named_quarantine(
        self, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
    ) -> Sequence[Quarantined]:
        """The bad rows that commits up to the last `refresh` named and the quarantine has not, oldest first.

        Args:
            asked: partitions; where a commit names bad rows of others with them, those are included.
            held: how far the quarantine has come, for every partition that it knows.
        """
