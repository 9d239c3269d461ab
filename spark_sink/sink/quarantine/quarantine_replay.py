"""Replays records from the quarantine: repaired, and each exactly once.

There is no list of waiting records: they are the records that the quarantine has and the table lacks. So an interrupted
replay is simply repeated. A counter in the table's log, with the same fence as batches, detects concurrent replays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import ConflictError, SchemaError, TableError, plain
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.iceberg.replayed_rows import IcebergReplay
from spark_sink.lake.matching_tables import refuse_quarantine
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.quarantine_reader import quarantine_records
from spark_sink.lake.table_addresses import Storage, is_iceberg, table_uri
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.lake.table_dataset import rows_where
from spark_sink.lake.table_storage import filesystem, no_delta_table
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import ATTEMPTS

Repair = Callable[[pa.Table], pa.Table]
_Key = tuple[str, int, int]

_KEYS = ("topic", "partition", "offset")
_PART_ROWS, _PART_BYTES = 100_000, 1 << 26  # bounds of a part, reached with its last batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The outcome of a replay.

    Attributes:
        rows: number of records written to the table.
        left: number of records that stay in quarantine, because the repair did not return them.
    """

    rows: int
    left: int


def waiting(
    table: str, group: str, storage: Storage | None = None, columns: Sequence[str] = SCHEMA.names
) -> Iterator[pa.Table]:
    """Read quarantined records that the table lacks, in parts and in no particular order.

    Args:
        table: address of the table.
        group: the consumer group that wrote it.
        storage: options of the object store.
        columns: columns of the quarantine, with topic, partition and offset among them.

    Raises:
        TableError: the table or its quarantine cannot be read.
    """
    place = _place(table, group, storage)
    snapshot = place.snapshot()
    for part in _parts(place.records(columns)):
        yield _waiting(place, snapshot, part)


def as_is(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows unchanged: a repair for tables of raw records.

    Raises:
        SchemaError: the table has columns that a raw record lacks.
    """
    strange = [name for name in schema.names if name not in SCHEMA.names]
    if strange:
        raise SchemaError(
            f"the table has the column {strange[0]!r}, which a quarantined record does not have; "
            "name the function that decodes it with --repair module:function"
        )
    return rows.select(schema.names).cast(schema)


def replay(table: str, group: str, repair: Repair | None = None, storage: Storage | None = None) -> Replayed:
    """Write quarantined records to the table, each exactly once.

    The records are read and committed in parts, so the quarantine may be larger than the memory. If a part fails, the
    earlier ones are in the table, and the next replay continues with the others.

    Args:
        table: address of the table.
        group: the consumer group that wrote it.
        repair: gets the records of a part in the columns of the quarantine, and returns rows in the columns of the
            table; records that it leaves out stay in quarantine. None leaves them unchanged.
        storage: options of the object store.

    Raises:
        SchemaError: the repaired rows do not fit the table.
        TableError: the repair returned unknown records, or other writers were always faster.
    """
    refuse_quarantine("quarantine replay", table, storage)
    place = _place(table, group, storage)
    place.snapshot()  # before the quarantine is read: the table's next reading then detects a rewind
    done = [_replay(place, part, repair) for part in _parts(place.records())]
    return Replayed(rows=sum(one.rows for one in done), left=sum(one.left for one in done))


class _DeltaReplay:
    """A Delta table into which quarantined records are replayed; `IcebergReplay` has the same methods."""

    def __init__(self, table: str, group: str, storage: Storage | None) -> None:
        self._uri, self._storage = table_uri(table), storage
        self.table = DeltaLakeTable(self._uri, group, storage)

    def snapshot(self) -> Snapshot:
        return _snapshot(self.table)

    def records(self, columns: Sequence[str] = SCHEMA.names) -> Iterator[pa.RecordBatch]:
        log = TransactionLog(self._uri, self._storage)
        log.refresh()
        return quarantine_records(self._uri, log, self._storage, columns)

    def near(self, snapshot: Snapshot, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        topics, offsets = pc.unique(rows.column("topic")), rows.column("offset")
        bounds = pc.min_max(offsets)
        near = (pc.field("offset") >= bounds["min"]) & (pc.field("offset") <= bounds["max"])  # leaves out whole files
        near &= pc.field("offset").isin(pc.unique(offsets))
        try:
            options = dict(self._storage or {}) or None
            handle = DeltaTable(self._uri, version=snapshot.version, storage_options=options)
            yield from rows_where(handle, lambda topic: near & topic.isin(topics), _KEYS)
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise TableError(f"{self._uri}: the table cannot be read: {plain(error)}") from error

    def landing(self, schema: pa.Schema) -> Landing:
        layout = Layout(partition_columns=self.table.partition_columns)
        return Landing(filesystem(self._uri, self._storage), schema, layout)


_Place = _DeltaReplay | IcebergReplay


def _place(table: str, group: str, storage: Storage | None) -> _Place:
    return (IcebergReplay if is_iceberg(table) else _DeltaReplay)(table, group, storage)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _PART_ROWS or size >= _PART_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _replay(place: _Place, part: pa.Table, repair: Repair | None) -> Replayed:
    """Write some of the quarantined records in one commit."""
    for _ in range(ATTEMPTS):
        snapshot = place.snapshot()
        rows = _waiting(place, snapshot, part).sort_by([(name, "ascending") for name in _KEYS])
        if not rows.num_rows:
            return Replayed(rows=0, left=0)
        good = repair(rows) if repair else as_is(rows, snapshot.schema)
        if not isinstance(good, pa.Table):
            raise SchemaError(f"the repair returned {type(good).__name__}; it must return a pyarrow.Table")
        _refuse_strangers(good, rows)
        if not good.num_rows:
            return Replayed(rows=0, left=rows.num_rows)
        _refuse_columns(good, snapshot.schema)
        good = good.select([name for name in snapshot.schema.names if name in good.column_names])
        landing = place.landing(good.schema)
        for batch in good.to_batches():
            landing.write(batch)
        note = {"agent": "quarantine replay"}
        change = Change(
            files=landing.close(),
            positions={},
            beginnings={},
            schema=good.schema,
            note=note,
            replays=snapshot.replays + 1,
        )
        try:
            place.table.swap(snapshot, change)
        except ConflictError:
            continue
        return Replayed(rows=good.num_rows, left=rows.num_rows - good.num_rows)
    raise TableError(
        f"{place.table.name}: the replay lost against other writers {ATTEMPTS} times in a row; run it again for the "
        "records that are not in the table yet"
    )


def _snapshot(handle: DeltaLakeTable) -> Snapshot:
    snapshot = handle.refresh()
    if snapshot is None:
        raise TableError(no_delta_table(handle.name))
    return snapshot


def _waiting(place: _Place, snapshot: Snapshot, rows: pa.Table) -> pa.Table:
    """Leave out records that the table has, and records above its positions, whose batch will be repeated."""
    if not rows.num_rows:
        return rows
    keys = _keys(rows)
    wanted = set(keys)
    known = {key for batch in place.near(snapshot, rows) for key in _keys(batch) if key in wanted}
    positions: Mapping[TopicPartition, int] = snapshot.positions
    return rows.filter(
        pa.array([key not in known and key[2] < positions.get(TopicPartition(*key[:2]), 0) for key in keys], pa.bool_())
    )


def _keys(rows: pa.Table | pa.RecordBatch) -> list[_Key]:
    return list(zip(*(rows.column(name).to_pylist() for name in _KEYS), strict=True))


def _refuse_columns(good: pa.Table, schema: pa.Schema) -> None:
    """Refuse a column that neither table nor quarantine has: its values would be lost without a message."""
    if strange := [name for name in good.column_names if name not in {*schema.names, *SCHEMA.names}]:
        raise SchemaError(
            f"the repair returned the column {strange[0]!r}, which the table lacks; it has {', '.join(schema.names)}"
        )


def _refuse_strangers(good: pa.Table, asked: pa.Table) -> None:
    missing = [name for name in _KEYS if name not in good.column_names]
    if missing:
        raise SchemaError(f"the repair returned rows without the column {missing[0]!r}")
    allowed = set(_keys(asked))
    for topic, partition, offset in _keys(good):
        if (topic, partition, offset) not in allowed:
            raise TableError(
                f"the repair returned {topic}/{partition} offset {offset}, which was not among its records, or which "
                "it returned before"
            )
        allowed.remove((topic, partition, offset))
