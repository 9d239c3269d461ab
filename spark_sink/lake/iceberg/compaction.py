"""Joins small data files of an Iceberg table, so that reading it does not get slower as it ages.

The agent that has expired old snapshots does it, so that one agent at a time does the work. Correctness does not depend
on that: the commit asserts the snapshot in which all files to remove still are. A compaction that comes late, after
another one or after a delete, is dropped. Appends in between do not matter: the same files are then replaced on top of
them.
"""

import json
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from spark_sink.errors import ConflictError, SparkSinkError, TableError, plain
from spark_sink.lake.iceberg.ancestry import COMPACTION, NOTE
from spark_sink.lake.iceberg.columns import arrow_columns
from spark_sink.lake.iceberg.data_entries import entry, location
from spark_sink.lake.iceberg.gone_files import exists
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.iceberg.small_files import TARGET_BYTES, files_to_join
from spark_sink.lake.iceberg.snapshot_commit import assertions
from spark_sink.lake.landed_files import refuse_missing
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_contract import DataFile

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.table import FileScanTask, Table

_log = logging.getLogger("azimuth.sink")
_ATTEMPTS = 10
_SUMMARY = {NOTE: json.dumps({"kind": COMPACTION, "rows": 0})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Files of a table that are written again, and no commit names the new ones yet.

    Attributes:
        removed: entries of the former files.
        added: the new files, with the same rows.
    """

    removed: "Sequence[Entry]"
    added: Sequence[DataFile]


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
        return joined is not None and replace(name, look, joined)
    except Exception as error:  # noqa: BLE001 -- each catalog and each store has its own errors
        said = error if isinstance(error, SparkSinkError) else f"{type(error).__name__}: {plain(error)}"
        _log.info("%s: compaction left to the next time: %s", name, said)
        return False


def join(name: str, table: "Table", layout: Layout) -> Joined | None:
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
    return Joined(removed=[one.file for one in chosen], added=added)


def replace(name: str, look: "Callable[[], Table | None]", joined: Joined) -> bool:
    """Replace files on top of the newest version, if it has all of them; return whether that was done.

    Raises:
        ConflictError: other writers were faster each time.
        SchemaError: the columns of the new files were dropped or renamed.
    """
    from pyiceberg.exceptions import CommitFailedException, ValidationException  # noqa: PLC0415 -- loads slowly

    for _ in range(_ATTEMPTS):
        table = look()
        if table is None or has_deletes(table):
            return False
        written = {location(file): file.written_ms for file in joined.added}
        refuse_missing(name, written, partial(exists, table))
        try:
            _commit(name, table, joined)
        except ValidationException as error:
            _log.info("%s: compaction dropped: another writer removed some of its files: %s", name, plain(error))
            return False
        except CommitFailedException:
            continue
        return True
    raise ConflictError(f"{name}: other writers were faster {_ATTEMPTS} times in a row")


def has_deletes(table: "Table") -> bool:
    """Return whether deletes by row apply to the table's files."""
    from pyiceberg.manifest import ManifestContent  # noqa: PLC0415 -- loads slowly

    snapshot = table.current_snapshot()
    found = snapshot.manifests(table.io) if snapshot else []
    return any(one.content == ManifestContent.DELETES for one in found)


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
    from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415 -- loads slowly
    from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415 -- as above

    columns = arrow_columns(table.schema())
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    target = Layout(compression=layout.compression, file_bytes=4 * TARGET_BYTES)  # uncompressed: about four times
    landing = IcebergLanding(table, columns, target)
    for task in tasks:  # one at a time, because it is in memory as a whole
        for batch in scan.to_record_batches([task]):
            landing.write(batch.cast(columns))
    return landing.close()


def _commit(name: str, table: "Table", joined: Joined) -> None:
    from pyiceberg.table.snapshots import Operation  # noqa: PLC0415 -- loads slowly

    from spark_sink.lake.iceberg.day_names import name_any_day  # noqa: PLC0415 -- imports pyiceberg
    from spark_sink.lake.iceberg.read_transaction import ReadTransaction  # noqa: PLC0415 -- as above
    from spark_sink.lake.iceberg.replacing_producer import ReplaceFiles  # noqa: PLC0415 -- as above

    name_any_day()
    transaction = ReadTransaction(table)
    producer = ReplaceFiles(Operation.OVERWRITE, transaction, table.io, snapshot_properties=_SUMMARY)
    for one in joined.removed:
        producer.delete_data_file(one)
    for file in joined.added:
        producer.append_data_file(entry(name, file, table.metadata))
    producer.commit()  # writes the manifests; the catalog sees nothing of them yet
    required = (*transaction._requirements, *assertions(table))  # noqa: SLF001 -- without the retries of commit_transaction
    table._do_commit(transaction._updates, required)  # noqa: SLF001 -- once
