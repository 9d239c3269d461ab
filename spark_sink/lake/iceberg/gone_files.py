"""Bad rows that commits name, and whose files are gone: no reader could open a quarantine that lists them."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.data_entries import location
from spark_sink.lake.parquet_landing import storage_errors
from spark_sink.lake.table_contract import LostRecordsError, Quarantined

if TYPE_CHECKING:
    from pyiceberg.table import Table

_log = logging.getLogger("azimuth.sink")


def exists(table: "Table", path: str) -> bool:
    """Return whether the storage of a table has a file at this full address."""
    return bool(table.io.new_input(path).exists())


def began_ms(quarantine: "Table") -> float:
    """Return the time of the oldest version of a table, ms since 1970; -inf if its metadata names later ones only."""
    metadata = quarantine.metadata
    if min((one.sequence_number or 0 for one in metadata.snapshots), default=0) > 1:
        return -math.inf  # the first snapshot has expired, so the table may be much older
    former = [one.timestamp_ms for one in metadata.metadata_log] + [one.timestamp_ms for one in quarantine.history()]
    return min([metadata.last_updated_ms, *former])


def with_files(
    name: str, table: "Table", named: Sequence[Quarantined], quarantine_began_ms: Callable[[], float]
) -> Sequence[Quarantined]:
    """Refuse rows whose files are gone, or leave them out of a quarantine that someone has dropped.

    Args:
        name: of the table, in messages.
        table: the table.
        named: bad rows that the quarantine lacks.
        quarantine_began_ms: returns when the quarantine began: files that are older were in one that was dropped.

    Raises:
        LostRecordsError: files are gone, and the quarantine was not dropped since they were written.
        TableError: the storage does not answer.
    """
    files = [file for one in named for file in one.files]
    with storage_errors(quarantine_of(name)):
        gone = {file.path: file for file in files if not exists(table, location(file))}
    if not gone:
        return named
    left = [replace(one, files=[file for file in one.files if file.path not in gone]) for one in named]
    sentence = (
        f"{name}: {sum(file.rows for file in gone.values())} bad records that its commits name are not in "
        f"{quarantine_of(name)}, and their files are gone, such as {min(gone)}"
    )
    if max(file.written_ms for file in gone.values()) >= quarantine_began_ms():
        raise LostRecordsError(
            f"{sentence}. Did another program remove files that no snapshot names? Put them back from a backup; "
            "without one, copy the quarantine and drop it, and start the agents again: they begin another one",
            left,
        )
    _log.error("%s. The quarantine was dropped, so they are given up; `azimuth verify` lists their offsets", sentence)
    return left
