"""Chooses and joins small data files of an Iceberg table, so that reading it does not get slower as it ages.

The agent that has expired old snapshots does it, so that one agent at a time does the work. Correctness does not depend
on that: the commit asserts the snapshot in which all files to remove still are. A compaction that comes late, after
another one or after a delete, is dropped. Appends in between do not matter: the same files are then replaced on top of
them.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from spark_sink.errors import SparkSinkError, TableError, plain_with_class
from spark_sink.lake.iceberg.columns import arrow_columns
from spark_sink.lake.iceberg.file_replacement import Replacement, has_deletes, replace_files
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.iceberg.rollback_detection import COMPACTION
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import DataFile

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

_log = logging.getLogger("azimuth.sink")
_NOTE = {"kind": COMPACTION, "rows": 0}
_MB = 1 << 20
BOUNDS = (64 * _MB, 8 * _MB, _MB)  # upper bounds of the classes of sizes, bytes; larger files stay as they are
ENOUGH = 8  # files of a class that are joined
MOST_BYTES = 512 * _MB  # that one compaction reads
TARGET_BYTES = 128 * _MB  # of a joined file


def compact(name: str, look: "Callable[[], Table | None]", layout: Layout) -> bool:
    """Join small files; return whether that was done. A failure is only logged: the batch before it is committed.

    Args:
        name: of the table, in messages.
        look: reads the newest version of the table, and refuses one that was rolled back.
        layout: of the new files.
    """
    try:
        table = look()
        joined = None if table is None else join(name, table, layout)
        return joined is not None and replace_files(name, look, joined)
    except Exception as error:  # noqa: BLE001 -- each catalog and each store has its own errors
        said = error if isinstance(error, SparkSinkError) else plain_with_class(error)
        _log.info("%s: compaction left to the next time: %s", name, said)
        return False


def join(name: str, table: "Table", layout: Layout) -> Replacement | None:
    """Write the rows of small files into larger ones; None if there are too few small files.

    Files of a table with deletes of other engines stay: a delete applies to earlier files only, so their rows would
    come back.

    Raises:
        TableError: the new files have fewer or more rows than the former ones.
    """
    if has_deletes(table):
        return None
    chosen = _chosen(table)
    if not chosen:
        return None
    added = _written(table, sorted(chosen, key=lambda one: one.file.file_path), layout)
    before, after = (sum(counts) for counts in ([one.file.record_count for one in chosen], [one.rows for one in added]))
    if before != after:
        raise TableError(f"{name}: {before} rows were read and {after} are in the new files; nothing was changed")
    return Replacement(removed=[one.file for one in chosen], added=added, note=_NOTE)


def _chosen(table: "Table") -> "list[FileScanTask]":
    """Return the files to join, partition by partition; those of a former partitioning stay."""
    by_partition: dict[Hashable, list[FileScanTask]] = {}
    for one in table.scan().plan_files():
        if one.file.spec_id == table.spec().spec_id:
            by_partition.setdefault(one.file.partition, []).append(one)
    return [
        tasks[at]
        for tasks in by_partition.values()
        for at in files_to_join([one.file.file_size_in_bytes for one in tasks])
    ]


def _written(table: "Table", tasks: "Sequence[FileScanTask]", layout: Layout) -> list[DataFile]:
    from spark_sink.lake.iceberg.file_scan import file_scan

    columns = arrow_columns(table.schema())
    scan = file_scan(table.metadata, table.io, table.schema())
    target = Layout(compression=layout.compression, file_bytes=4 * TARGET_BYTES)  # uncompressed: about four times
    landing = IcebergLanding(table, columns, target)
    for task in tasks:  # one at a time, because it is in memory as a whole
        for batch in scan.to_record_batches([task]):
            landing.write(batch.cast(columns))
    return landing.close()


def files_to_join(sizes: Sequence[int]) -> list[int]:
    """Choose files to join, by their sizes.

    Files of a class are joined when there are enough of them, together with all smaller ones. So the files of one class
    make a file of the next class or larger, and a row is rewritten about once for each class. Only files below the
    smallest bound may be joined more often, which costs little.

    Args:
        sizes: bytes of each file of a partition.

    Returns:
        Their places in `sizes`, the smallest first; empty if there is nothing to do.
    """
    for bound, below in zip(BOUNDS, (*BOUNDS[1:], 0), strict=True):
        if sum(below <= size < bound for size in sizes) >= ENOUGH:
            return _fitting([at for at in sorted(range(len(sizes)), key=sizes.__getitem__) if sizes[at] < bound], sizes)
    return []


def _fitting(places: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the first places whose files have MOST_BYTES together."""
    found: list[int] = []
    total = 0
    for at in places:
        total += sizes[at]
        if total > MOST_BYTES:
            break
        found.append(at)
    return found
