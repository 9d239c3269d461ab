"""The sink's requirements of a lake table: a few values and one Protocol, for Delta and Iceberg."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa

from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import TopicPartition

KEYS = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
"""The columns that identify a record, with their types."""


class Span(NamedTuple):
    """The rows of one partition in one file: lowest and highest offset, both inclusive, and the number of rows."""

    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One written data file that no commit names yet.

    Attributes:
        path: relative to the table.
        size_bytes: size of the file.
        spans: its rows, by partition. A partition may be in several files of a batch.
        partition_values: values of the table's partition columns, as text.
        stats: the statistics in the table format's JSON.
        written_ms: time at which it was closed, ms since 1970.
    """

    path: str
    size_bytes: int
    spans: Mapping[TopicPartition, Span]
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    stats: str = "{}"
    written_ms: int = 0

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        return sum(span.rows for span in self.spans.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """The bad rows of one commit: data files of the quarantine, which a commit of the table names.

    The quarantine is a separate table, and one commit cannot change two tables. So only the commit of the table decides
    which rows are bad. Any writer can add these files to the quarantine afterwards, at any time.

    Attributes:
        files: files of the quarantine.
        ends: the table's next offset by partition after this commit, for partitions with bad rows.
        before: the same for the previous commit with bad rows of the partition; missing for the first.
    """

    files: Sequence[DataFile]
    ends: Mapping[TopicPartition, int]
    before: Mapping[TopicPartition, int] = field(default_factory=dict)


class LostRecordsError(TableError):
    """Bad rows that commits name are gone.

    Attributes:
        left: the commits with the files that are still there, oldest first; it reaches all ends that were named.
    """

    def __init__(self, sentence: str, left: Sequence[Quarantined]) -> None:
        super().__init__(sentence)
        self.left = left


NOT_CREATED = -1
"""The version of a table that the first swap creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table at one version.

    Attributes:
        version: rises with each commit; `NOT_CREATED` before the first one.
        positions: the group's next offset by partition, at exactly this version.
        schema: the columns.
        replays: number of replays from the quarantine.
        identities: the topic id of each name, as a number, if a writer stored it.
        quarantined: the table's next offset, by partition, after the newest commit that named bad rows of it.
        writes: the number of the last batch write of each query in `foreachBatch`, and outside of a stream.
        beginnings: the group's first offset, by partition; a quarantine has none.
    """

    version: int
    positions: Mapping[TopicPartition, int]
    schema: pa.Schema
    replays: int = 0
    identities: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[TopicPartition, int] = field(default_factory=dict)
    writes: Mapping[str, int] = field(default_factory=dict)
    beginnings: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One commit: files to add and positions to set, atomically.

    Attributes:
        files: to add.
        positions: the new next offset, by partition.
        beginnings: first offset of the group, for partitions that had no position.
        schema: the columns of the files.
        note: JSON for the table's history.
        replays: the new number of replays; None if the change is not a replay.
        identities: the topic id of each name, as a number.
        quarantined: the bad rows that belong to this commit; None for none.
        writes: the number of this batch write, by query; empty for the batch of a stream.
    """

    files: Sequence[DataFile]
    positions: Mapping[TopicPartition, int]
    beginnings: Mapping[TopicPartition, int]
    schema: pa.Schema
    note: Mapping[str, object] = field(default_factory=dict)
    replays: int | None = None
    identities: Mapping[str, int] = field(default_factory=dict)
    quarantined: Quarantined | None = None
    writes: Mapping[str, int] = field(default_factory=dict)


class Table(Protocol):
    """A lake table with compare and swap, for one consumer group.

    Contract:
    * `refresh` returns one consistent version: positions and schema belong together. It may be an older one, if the
      store lists late; `swap` on it has a conflict.
    * `swap` succeeds only if, since that snapshot, no other writer has set a position (or an identity, a write, or the
      number of replays) that the change sets, and none has changed the columns. Else it raises ConflictError without a
      change. Appends to other partitions do not matter.
    * After an error of `swap` the commit may have succeeded; the caller refreshes and compares to find out.
    * No method deletes a data file. Calls may block on storage; one thread at a time.
    """

    @property
    def name(self) -> str:
        """The table's name in messages."""

    def refresh(self) -> Snapshot | None:
        """Read the newest version; None if there is no table."""

    def newest(self) -> Snapshot | None:
        """Read the newest version as `refresh`, and be sure of it: a store may list a new version late.

        This may take a request more and some seconds, so it is for the moment before a refusal.
        """

    def create(self, schema: pa.Schema) -> None:
        """Create the table; no error if another writer was faster."""

    def begin(self, schema: pa.Schema) -> Snapshot:
        """Return the first state of a table that `refresh` did not find; the table exists from the first swap on.

        A format may create it here. If another writer is faster, the swap has a conflict.
        """

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        """Commit the change on top of the snapshot, or raise ConflictError."""

    def filtered(self, file: DataFile, floors: Mapping[TopicPartition, int]) -> DataFile | None:
        """Copy the rows at or above the floor of their partition into a new file; None if no row is left."""

    def named_quarantine(
        self, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
    ) -> Sequence[Quarantined]:
        """Return bad rows that commits up to the last `refresh` named and the quarantine lacks, oldest first.

        Args:
            asked: partitions; if a commit also names bad rows of others, those are included.
            held: position of the quarantine, for every partition that it knows.
        """


def create_and_look(table: Table, schema: pa.Schema) -> Snapshot:
    """Create a table, and return its first state.

    Raises:
        SchemaError, TableError: as `create` and `newest` of the table; or it is gone again.
    """
    table.create(schema)
    if (snapshot := table.refresh() or table.newest()) is None:
        raise TableError(f"{table.name}: the table was made and is gone again; does someone else delete it?")
    return snapshot
