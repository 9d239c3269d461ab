"""One version of a quarantine, and its records that are not published yet."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError, plain
from spark_sink.formats.bad_values_quarantined import SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.positions_in_delta_log import groups, parse_positions
from spark_sink.lake.table_addresses import Storage, is_iceberg, table_uri
from spark_sink.lake.table_dataset import rows_where
from spark_sink.lake.table_storage import is_delta_table
from spark_sink.ranges.batch_offset import TopicPartition

_ROWS: Final = 8192
_FILTERED: Final = 256
_KEY: Final = ("topic", "partition")


Ends = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """One version of a quarantine.

    Attributes:
        id: of the table, which stays when it moves.
        version: rises with each commit.
        name: its address.
        read: reads the records in parts, and may leave out those below the next offset to publish.
        groups: the partitions whose records each group has quarantined.
    """

    id: str
    version: int
    name: str
    read: Callable[[Ends], Iterator[pa.RecordBatch]]
    groups: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: str, storage: Storage | None = None) -> "Quarantine | None":
        """Open the quarantine of a table of either format at its newest version; None if there is none.

        Raises:
            TableError: it cannot be read.
        """
        if is_iceberg(table):
            return _iceberg(quarantine_of(iceberg_address(table)), storage or {})
        return _delta(quarantine_of(table_uri(table)), storage)

    def above(self, done: Ends, group: str) -> Iterator[pa.Table]:
        """Read the records of a group that are not published yet, in parts and in no particular order.

        Args:
            done: the next offset to publish, by partition; partitions without one begin at their first record.
            group: the consumer group; the first one by name has the partitions of none, too.

        Raises:
            TableError: it cannot be read.
        """
        try:
            for batch in self.read(done):
                rows = self._of_group(_unpublished(pa.Table.from_batches([batch]).cast(SCHEMA), done), group)
                if rows.num_rows:
                    yield rows
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise TableError(f"{self.name}: the quarantine cannot be read: {plain(error)}") from error

    def _of_group(self, rows: pa.Table, group: str) -> pa.Table:
        if self.groups.keys() <= {group}:
            return rows
        known = frozenset[TopicPartition]().union(*self.groups.values())
        own, first = self.groups.get(group, frozenset()), group == min(self.groups)
        keys = (TopicPartition(*place) for place in zip(*(rows.column(n).to_pylist() for n in _KEY), strict=True))
        return rows.filter(pa.array([key in own or (first and key not in known) for key in keys], pa.bool_()))


def without_topic(rows: pa.Table, topic: str) -> pa.Table:
    """Leave out the records of a topic, and those of recreated topics of its name, `<topic>@<topic id>`."""
    names = pc.list_element(pc.split_pattern(rows.column("topic"), "@", max_splits=1), 0)
    return rows.filter(pc.not_equal(names, topic))


def _delta(address: str, storage: Storage | None) -> Quarantine | None:
    options = dict(storage or {}) or None
    try:
        if not is_delta_table(address, storage):
            return None
        handle = DeltaTable(address, storage_options=options)
        kept = TransactionLog(address, storage).refresh(handle.version())
        return Quarantine(
            id=str(handle.metadata().id),
            version=handle.version(),
            name=address,
            read=lambda done: rows_where(handle, partial(_above, done), SCHEMA.names, batch_size=_ROWS),
            groups={group: frozenset(parse_positions(kept, group)) for group in groups(kept)},
        )
    except (DeltaError, OSError) as error:
        raise TableError(f"{address}: the quarantine cannot be read: {plain(error)}") from error


def _iceberg(address: str, storage: Storage) -> Quarantine | None:
    found = open_stored(address, storage)
    if found is None:
        return None

    def read(done: Ends) -> Iterator[pa.RecordBatch]:
        from spark_sink.lake.iceberg.offset_filters import not_below  # noqa: PLC0415 -- imports pyiceberg

        few = 0 < len(done) <= _FILTERED
        for batch in found.rows(SCHEMA.names, not_below(done) if few else "true"):
            yield batch.select(SCHEMA.names)

    return Quarantine(
        id=str(found.table.metadata.table_uuid),
        version=found.version,
        name=address,
        read=read,
        groups={group: frozenset(state.positions) for group, state in found.state.groups.items()},
    )


def _above(done: Mapping[TopicPartition, int], topic: pc.Expression) -> pc.Expression:
    """Return a filter that skips whole files; all rows for many partitions: thousands overflow the stack of Arrow."""
    if not 0 < len(done) <= _FILTERED:
        return pc.scalar(True)  # noqa: FBT003 -- a literal of the expression
    old = [
        (topic == key.topic) & (pc.field("partition") == key.partition) & (pc.field("offset") < at)
        for key, at in done.items()
    ]
    return ~reduce(or_, old)


def _unpublished(rows: pa.Table, done: Mapping[TopicPartition, int]) -> pa.Table:
    if len(done) <= _FILTERED:
        return rows  # filtered already
    places = zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True)
    return rows.filter(pa.array([at >= done.get(TopicPartition(topic, n), 0) for topic, n, at in places], pa.bool_()))
