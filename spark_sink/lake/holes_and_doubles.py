"""Finds holes and doubles per partition, from the table only.

Offsets are stored as runs `[first, end)`, so memory grows with the gaps of a table and not with its rows: a partition
without a hole is one run, for any number of records.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.errors import TableError, plain
from spark_sink.lake.delta_log_reader import TransactionLog
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.positions_in_table_properties import GroupState
from spark_sink.lake.iceberg.stored_rows import StoredTable, open_stored, quarantined_rows
from spark_sink.lake.newest_version import newest_handle
from spark_sink.lake.positions_in_delta_log import groups, parse_group, transactions
from spark_sink.lake.quarantine_reader import quarantine_records
from spark_sink.lake.table_addresses import Storage, is_iceberg, table_uri
from spark_sink.lake.table_dataset import all_rows
from spark_sink.lake.table_storage import no_delta_table, no_iceberg_table
from spark_sink.lake.vacuumed_files import with_way_out
from spark_sink.ranges.batch_offset import TopicPartition

Run = tuple[int, int]

COLUMNS = ("topic", "partition", "offset")


class Runs:
    """A set of offsets as disjoint, sorted runs, and the offsets that were added more than once."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._doubles: list[Run] = []
        self.rows = 0

    def __iter__(self) -> Iterator[Run]:
        return iter(zip(self._starts, self._ends, strict=True))

    @property
    def doubles(self) -> Sequence[Run]:
        """Runs of repeated offsets, once for each repetition."""
        return self._doubles

    def add(self, offsets: npt.NDArray[np.int64]) -> None:
        """Add offsets in any order, with repetitions.

        Args:
            offsets: shape (N,).
        """
        self.rows += len(offsets)
        offsets = np.sort(offsets)
        again = offsets[1:][offsets[1:] == offsets[:-1]]
        self._doubles += _runs(again)
        for first, end in _runs(np.unique(offsets)):
            self._insert(first, end)

    def _insert(self, first: int, end: int) -> None:
        # The runs left .. right - 1 overlap or touch [first, end).
        left = bisect_right(self._starts, first) - 1
        if left < 0 or self._ends[left] < first:
            left += 1
        right = left
        while right < len(self._starts) and self._starts[right] <= end:
            low, high = max(first, self._starts[right]), min(end, self._ends[right])
            if low < high:
                self._doubles.append((low, high))
            right += 1
        if left < right:
            first, end = min(first, self._starts[left]), max(end, self._ends[right - 1])
        self._starts[left:right] = [first]
        self._ends[left:right] = [end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result for one partition of a table.

    Attributes:
        topic: name.
        partition: number.
        rows: number of rows.
        begin: expected first offset.
        end: expected end, exclusive.
        doubles: runs of offsets that occur more than once.
        holes: runs of missing offsets.
        quarantine_doubles: runs of offsets that occur more than once in the quarantine.
    """

    topic: str
    partition: int
    rows: int
    begin: int
    end: int
    doubles: Sequence[Run] = ()
    holes: Sequence[Run] = ()
    quarantine_doubles: Sequence[Run] = ()

    @property
    def duplicates(self) -> int:
        """Rows too many, in the table and in its quarantine."""
        return sum(end - first for first, end in [*self.doubles, *self.quarantine_doubles])

    @property
    def missing(self) -> int:
        """Offsets that are not there."""
        return sum(end - first for first, end in self.holes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result for a table.

    Attributes:
        findings: by partition, sorted, including partitions without holes and doubles.
    """

    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return sum(one.rows for one in self.findings)

    @property
    def duplicates(self) -> int:
        """Rows too many."""
        return sum(one.duplicates for one in self.findings)

    @property
    def missing(self) -> int:
        """Offsets that are not there."""
        return sum(one.missing for one in self.findings)

    @property
    def ok(self) -> bool:
        """Whether the table has every offset once."""
        return not self.duplicates and not self.missing


def scan(batches: Iterable[pa.RecordBatch]) -> dict[TopicPartition, Runs]:
    """Collect the offsets of every partition from batches with the columns topic, partition and offset."""
    found: dict[TopicPartition, Runs] = {}
    for batch in batches:
        for key, offsets in _by_partition(batch):
            found.setdefault(key, Runs()).add(offsets)
    return found


def judge(
    found: Mapping[TopicPartition, Runs],
    positions: Mapping[TopicPartition, int],
    beginnings: Mapping[TopicPartition, int],
    accounted: Mapping[TopicPartition, Runs] | None = None,
) -> Report:
    """Find the holes and the doubles.

    Args:
        found: offsets by partition.
        positions: expected end of each partition; by default after the highest offset.
        beginnings: expected first offset of each partition; by default the lowest offset.
        accounted: offsets that are elsewhere for a reason (quarantine), by partition. Offsets at or above the position
            belong to a batch whose other rows are not committed yet.
    """
    elsewhere = accounted or {}
    findings = []
    for key in sorted({*found, *positions}):
        runs, other = list(found.get(key, ())), list(elsewhere.get(key, ()))
        reach = max([positions.get(key, 0), *(high for _, high in runs)])
        known = _union([*runs, *((low, min(high, reach)) for low, high in other if low < reach)])
        begin = beginnings.get(key, known[0][0] if known else positions.get(key, 0))
        end = max(reach, begin)
        findings.append(
            Finding(
                topic=key.topic,
                partition=key.partition,
                rows=found[key].rows if key in found else 0,
                begin=begin,
                end=end,
                doubles=tuple(sorted(found[key].doubles)) if key in found else (),
                holes=tuple(_gaps(known, begin, end)),
                quarantine_doubles=tuple(_below(elsewhere[key].doubles, reach)) if key in elsewhere else (),
            )
        )
    return Report(findings=findings)


def verify(
    table: str,
    group: str | None = None,
    storage_options: Storage | None = None,
    accounted: Mapping[TopicPartition, Runs] | None = None,
) -> Report:
    """Check a table: every offset of every partition exactly once.

    Offsets without a record in Kafka (compacted topics, transactions) look like holes; the table does not show the
    difference.

    Args:
        table: address of the table; an Iceberg table is `iceberg://catalog.namespace.table`.
        group: the consumer group that wrote it; not needed if there is only one.
        storage_options: options of the object store, or of the catalog.
        accounted: offsets that are elsewhere for a reason, by partition; by default those in the table's quarantine.

    Raises:
        TableError: there is no table, it cannot be read, it has several groups and none was named, or its rows have no
            identifying columns.
    """
    if is_iceberg(table):
        return _verify_iceberg(iceberg_address(table), group, storage_options or {}, accounted)
    uri = table_uri(table)
    try:
        handle = newest_handle(uri, storage_options)
        log = TransactionLog(uri, storage_options)
        kept = log.refresh(handle.version())  # rows and positions of one version
        name = named_group(uri, groups(kept), group)
        found = scan_table(handle)
        if accounted is None:
            accounted = scan(quarantine_records(uri, log, storage_options, COLUMNS))
    except TableNotFoundError as error:
        raise TableError(no_delta_table(uri)) from error
    except (DeltaError, OSError, KeyError, OverflowError, ValueError) as error:
        raise TableError(f"{uri}: the table cannot be read: {with_way_out(plain(error))}") from error
    own = parse_group(kept, name)
    return judge(found, own.positions, own.beginnings, accounted)


def _verify_iceberg(
    address: str, group: str | None, storage: Storage, accounted: Mapping[TopicPartition, Runs] | None
) -> Report:
    table = _stored(address, storage)
    groups_here = table.state.groups
    name = named_group(table.name, sorted(groups_here), group)
    found = scan(table.rows(COLUMNS))
    if accounted is None:
        accounted = scan(quarantined_rows(address, table, storage, COLUMNS))
    state = groups_here.get(name, GroupState())
    return judge(found, state.positions, state.beginnings, accounted)


def _stored(address: str, storage: Storage) -> StoredTable:
    table = open_stored(address, storage)
    if table is None:
        raise TableError(no_iceberg_table(address))
    return table


def scan_table(handle: DeltaTable) -> dict[TopicPartition, Runs]:
    """Collect the offsets of every partition of a table.

    Raises:
        TableError: a row has no topic, no partition or no offset.
        DeltaError, OSError: the rows cannot be read.
    """
    try:
        return scan(all_rows(handle, COLUMNS))
    except TableError as error:
        raise TableError(f"{handle.table_uri}: {error}") from error


def writing_group(table: str, group: str | None, storage: Storage | None = None) -> str:
    """Return the named group, or the only one, of a table of either format; empty if no group has written.

    Raises:
        TableError: there is no Iceberg table, the group has not written here, or several groups have and none was
            named.
    """
    if not is_iceberg(table):
        return named_group(table, groups(transactions(table, storage)), group)
    return named_group(table, sorted(_stored(iceberg_address(table), storage or {}).state.groups), group)


def named_group(uri: str, known: Sequence[str], group: str | None) -> str:
    """Return the named group, or the only one; empty if no group has written.

    Args:
        uri: address of the table, for messages.
        known: groups that have written here.
        group: the name, if one was given.

    Raises:
        TableError: the group has not written here, or several groups have and none was named.
    """
    if group is None and len(known) > 1:
        raise TableError(f"{uri}: several groups have written here ({', '.join(known)}); name one with --group")
    if group is not None and group not in known:
        raise TableError(f"{uri}: group {group!r} has written nothing here; known are {known}")
    return group or (known[0] if known else "")


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, npt.NDArray[np.int64]]]:
    if not batch.num_rows:
        return
    if nameless := max(batch.column(name).null_count for name in COLUMNS):
        raise TableError(
            f"{nameless} or more rows have no topic, no partition or no offset, so it is unknown whether they are "
            "there twice; this sink writes no such rows: which other program writes into the table?"
        )
    topics = batch.column("topic")
    if not pa.types.is_dictionary(topics.type):
        topics = topics.dictionary_encode()
    partitions = batch.column("partition").to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = batch.column("offset").to_numpy(zero_copy_only=False).astype(np.int64)
    codes = topics.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    keys = codes << 32 | partitions
    order = np.argsort(keys, kind="stable")
    keys, offsets = keys[order], offsets[order]
    cuts = np.flatnonzero(np.diff(keys)) + 1
    names = topics.dictionary.to_pylist()
    for part, at in zip(np.split(offsets, cuts), [0, *cuts.tolist()], strict=True):
        yield TopicPartition(names[int(keys[at]) >> 32], int(keys[at]) & 0xFFFFFFFF), part


def _runs(offsets: npt.NDArray[np.int64]) -> list[Run]:
    """Return the runs of sorted offsets; a repeated offset starts a new run each time."""
    if not len(offsets):
        return []
    cuts = np.flatnonzero(np.diff(offsets) != 1) + 1
    firsts = offsets[np.concatenate([np.zeros(1, dtype=np.int64), cuts])]
    lasts = offsets[np.concatenate([cuts - 1, np.full(1, len(offsets) - 1)])]
    return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]


def _union(runs: Iterable[Run]) -> list[Run]:
    joined: list[Run] = []
    for first, end in sorted(runs):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    return joined


def _below(runs: Iterable[Run], reach: int) -> Iterator[Run]:
    return ((first, min(end, reach)) for first, end in sorted(runs) if first < reach)


def _gaps(runs: Sequence[Run], begin: int, end: int) -> Iterator[Run]:
    at = begin
    for first, after in runs:
        if at < first:
            yield at, first
        at = max(at, after)
    if at < end:
        yield at, end
