"""Replaces files of an Iceberg table in one commit that asserts the snapshot with all files that it depends on.

A replacement that comes late, after another one or after a delete, is dropped. Appends in between do not matter: the
same files are then replaced on top of them.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from spark_sink.errors import ConflictError
from spark_sink.lake.iceberg.data_entries import entry, location
from spark_sink.lake.iceberg.gone_files import exists
from spark_sink.lake.iceberg.rollback_detection import NOTE
from spark_sink.lake.iceberg.snapshot_commit import Prepared, commit
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.vacuumed_files import refuse_missing

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.table import Table

_log = logging.getLogger("azimuth.sink")
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Files of a table whose rows are written again, and no commit names the new ones yet.

    Attributes:
        removed: entries of the former files. A file that the table lists several times is removed as often.
        added: the new files.
        note: JSON for the table's history.
        rests_on: full addresses of further files that must be in the table.
    """

    removed: "Sequence[Entry]"
    added: Sequence[DataFile]
    note: Mapping[str, object]
    rests_on: frozenset[str] = frozenset()


def replace_files(name: str, look: "Callable[[], Table | None]", change: Replacement) -> bool:
    """Replace files on top of the newest version, if it has all of them; return whether that was done.

    Args:
        name: of the table, in messages.
        look: reads the newest version of the table, and refuses one that was rolled back.
        change: the files.

    Raises:
        ConflictError: other writers were faster each time.
        SchemaError: the columns of the new files were dropped or renamed.
        TableError: the catalog refused; the commit may or may not have succeeded.
    """
    needed = {one.file_path for one in change.removed} | change.rests_on
    for _ in range(_ATTEMPTS):
        table = look()
        if table is None or has_deletes(table):
            return False
        if gone := needed - {one.file.file_path for one in table.scan().plan_files()}:
            _log.info("%s: %s dropped: another writer removed %s", name, change.note["kind"], min(gone))
            return False
        written = {location(file): file.written_ms for file in change.added}
        refuse_missing(name, written, partial(exists, table))
        prepared = Prepared(
            entries=[entry(name, file, table.metadata) for file in change.added],
            properties={},
            summary={NOTE: json.dumps(dict(change.note), separators=(",", ":"))},
            removed=change.removed,
            same_rows=True,
        )
        try:
            commit(table, table.metadata.new_snapshot_id(), prepared)
        except ConflictError:
            continue
        return True
    raise ConflictError(f"{name}: other writers were faster {_ATTEMPTS} times in a row")


def has_deletes(table: "Table") -> bool:
    """Return whether deletes by row apply to the table's files."""
    from pyiceberg.manifest import ManifestContent

    snapshot = table.current_snapshot()
    found = snapshot.manifests(table.io) if snapshot else []
    return any(one.content == ManifestContent.DELETES for one in found)
