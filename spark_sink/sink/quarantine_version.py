"""One version of a quarantine, and its records that are not published yet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_sink.errors import TableError, plain
from spark_sink.formats.bad_rows import SCHEMA, quarantine_of
from spark_sink.lake.delta_transactions import TransactionLog
from spark_sink.lake.positions import groups, parse_positions
from spark_sink.lake.table_dataset import rows_where
from spark_sink.lake.table_storage import Storage, table_uri
from spark_sink.ranges.batch_offset import TopicPartition

_ROWS: Final = 8192
_FILTERED: Final = 256
_KEY: Final = ("topic", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """One version of a quarantine.

    Attributes:
        id: of the Delta table.
        version: of the Delta table.
        name: its address.
        handle: reads it.
        groups: the partitions whose records each group has quarantined.
    """

    id: str
    version: int
    name: str
    handle: DeltaTable
    groups: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: str, storage: Storage | None = None) -> Self | None:
        """Open the quarantine of a table at its newest version; None if there is none.

        Raises:
            TableError: it cannot be read.
        """
        address, options = quarantine_of(table_uri(table)), dict(storage or {}) or None
        try:
            if not DeltaTable.is_deltatable(address, options):
                return None
            handle = DeltaTable(address, storage_options=options)
            kept = TransactionLog(address, storage).refresh(handle.version())
            return cls(
                id=str(handle.metadata().id),
                version=handle.version(),
                name=address,
                handle=handle,
                groups={group: frozenset(parse_positions(kept, group)) for group in groups(kept)},
            )
        except (DeltaError, OSError) as error:
            raise TableError(f"{address}: the quarantine cannot be read: {plain(error)}") from error

    def above(self, done: Mapping[TopicPartition, int], group: str) -> Iterator[pa.Table]:
        """Read the records of a group that are not published yet, in parts and in no particular order.

        Args:
            done: the next offset to publish, by partition; partitions without one begin at their first record.
            group: the consumer group; the first one by name has the partitions of none, too.

        Raises:
            TableError: it cannot be read.
        """
        try:
            batches = rows_where(self.handle, partial(_above, done), SCHEMA.names, batch_size=_ROWS)
            for batch in batches:
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
