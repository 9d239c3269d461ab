"""A lake table in memory, for tests of code that uses `table_contract`, and as a pattern for another lake format."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from spark_sink.errors import ConflictError, SchemaError
from spark_sink.lake.table_contract import NOT_CREATED, Change, DataFile, Quarantined, Snapshot, Span
from spark_sink.ranges.batch_offset import TopicPartition

__all__ = ["MemoryStore", "MemoryTable", "Record"]

Record = tuple[TopicPartition, int]


@dataclass
class MemoryStore:
    """The state that all handles of one table share.

    Attributes:
        files: rows of written files by path, committed or not.
        committed: paths that belong to the table, in the order of their commits.
        positions: next offset by partition.
        beginnings: first offset of the group, by partition.
        changed: the version that set each position last.
        version: version of the table; -1 for none.
        schema: the columns.
        replays: number of replays from the quarantine.
        replayed: the version of the last replay.
        identities: the topic id of each name, as a number.
        identified: the version that set each identity last.
        quarantined: next offset by partition after the newest commit that named bad rows of it.
        named: the bad rows that commits named, oldest first.
        writes: the number of the last batch write of each query.
        written: the version that set each of these numbers.
    """

    files: dict[str, list[Record]] = field(default_factory=dict)
    committed: list[str] = field(default_factory=list)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    beginnings: dict[TopicPartition, int] = field(default_factory=dict)
    changed: dict[TopicPartition, int] = field(default_factory=dict)
    version: int = -1
    schema: pa.Schema | None = None
    replays: int = 0
    replayed: int = -1
    identities: dict[str, int] = field(default_factory=dict)
    identified: dict[str, int] = field(default_factory=dict)
    quarantined: dict[TopicPartition, int] = field(default_factory=dict)
    named: list[Quarantined] = field(default_factory=list)
    writes: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    _numbers: Iterable[int] = field(default_factory=itertools.count)

    def write(self, records: Iterable[Record]) -> DataFile:
        """Write a data file that no commit names yet."""
        path = f"file-{next(iter(self._numbers))}"
        self.files[path] = list(records)
        spans: dict[TopicPartition, Span] = {}
        for key, offset in self.files[path]:
            old = spans.get(key, Span(offset, offset, 0))
            spans[key] = Span(min(old.first, offset), max(old.last, offset), old.rows + 1)
        return DataFile(path=path, size_bytes=1, spans=spans)

    def rows(self) -> list[Record]:
        """The table's rows."""
        return [record for path in self.committed for record in self.files[path]]


class MemoryTable:
    """A handle on a table in memory; implements `Table`.

    Args:
        store: shared by all handles.
    """

    name = "memory"

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def refresh(self) -> Snapshot | None:
        """Read the newest version; None if there is no table."""
        store = self.store
        if store.schema is None:
            return None
        return Snapshot(
            version=store.version,
            positions=dict(store.positions),
            schema=store.schema,
            replays=store.replays,
            identities=dict(store.identities),
            quarantined=dict(store.quarantined),
            writes=dict(store.writes),
        )

    def newest(self) -> Snapshot | None:
        """Read the newest version; a listing in memory is never late."""
        return self.refresh()

    def create(self, schema: pa.Schema) -> None:
        """Create the table; no error if another handle was faster."""
        if self.store.schema is None:
            self.store.schema, self.store.version = schema, 0

    def begin(self, schema: pa.Schema) -> Snapshot:
        """Return the first state of a table that `refresh` did not find; the table exists from the first swap on."""
        return Snapshot(version=NOT_CREATED, positions={}, schema=schema)

    def swap(self, snapshot: Snapshot, change: Change) -> None:
        """Commit the change on top of the snapshot, or raise ConflictError."""
        store = self.store
        if snapshot.version == NOT_CREATED:
            if store.schema is not None:
                raise ConflictError("the table was created since")
            self.create(snapshot.schema)
        if any(store.changed.get(key, -1) > snapshot.version for key in change.positions):
            raise ConflictError("a position was set since the snapshot")
        if any(store.identified.get(topic, -1) > snapshot.version for topic in change.identities):
            raise ConflictError("an identity was set since the snapshot")
        if any(store.written.get(query, -1) > snapshot.version for query in change.writes):
            raise ConflictError("a batch was written since the snapshot")
        if change.replays is not None and store.replayed > snapshot.version:
            raise ConflictError("records were replayed since the snapshot")
        if change.schema != store.schema:
            raise SchemaError("the columns are others")
        store.version += 1
        store.committed += [file.path for file in change.files]
        store.positions.update(change.positions)
        store.beginnings.update(change.beginnings)
        if change.replays is not None:
            store.replays, store.replayed = change.replays, store.version
        store.identities.update(change.identities)
        store.identified.update(dict.fromkeys(change.identities, store.version))
        store.writes.update(change.writes)
        store.written.update(dict.fromkeys(change.writes, store.version))
        store.changed.update(dict.fromkeys(change.positions, store.version))
        if change.quarantined is not None:
            store.quarantined.update(change.quarantined.ends)
            store.named.append(change.quarantined)

    def filtered(self, file: DataFile, floors: Mapping[TopicPartition, int]) -> DataFile | None:
        """Copy the rows at or above the floor of their partition; None if no row is left."""
        left = [(key, offset) for key, offset in self.store.files[file.path] if offset >= floors[key]]
        return self.store.write(left) if left else None

    def named_quarantine(
        self, asked: Iterable[TopicPartition], held: Mapping[TopicPartition, int]
    ) -> Sequence[Quarantined]:
        """Return bad rows that commits named and the quarantine lacks, oldest first."""
        wanted = {key: end for key in asked if (end := self.store.quarantined.get(key, 0)) > held.get(key, 0)}
        found = []
        for one in reversed(self.store.named):
            if any(wanted.get(key) == end for key, end in one.ends.items()):
                found.append(one)
                before = {key: one.before.get(key, 0) for key in one.ends}
                wanted |= {key: end if end > held.get(key, 0) else 0 for key, end in before.items()}
        return found[::-1]
