"""Counts all quarantined records of an agent's tables, also those of other writers."""

import logging
from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.errors import TableError, plain
from spark_sink.fleet.background_values import BackgroundValue
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.table_addresses import Storage, is_iceberg

log = logging.getLogger(__name__)

_EVERY_S = 60.0


class Quarantined:
    """Counts them in the background, at most once a minute.

    Args:
        tables: returns the current addresses of the tables.
        storage: options of the object store.
    """

    def __init__(self, tables: Callable[[], Collection[str]], storage: Storage | None = None) -> None:
        self._tables = tables
        self._storage = dict(storage or {})
        self._count = BackgroundValue[int | None](self._add_up, None, _EVERY_S)

    def __call__(self) -> int | None:
        """Return the last count; None if there is none yet, or no table."""
        return self._count()

    def _add_up(self) -> int | None:
        tables = self._tables()
        if not tables:
            return None  # an agent that starts has none yet, and a zero would stand for a minute
        try:
            return sum(quarantined_rows(quarantine_of(table), self._storage) for table in tables)
        except (DeltaError, OSError, TableError) as error:
            log.info("fleet: quarantines not counted: %s", plain(error))
            return self._count.last


def quarantined_rows(table: str, storage: Storage | None = None) -> int:
    """Count the records of a quarantine, without its files.

    Args:
        table: address of the quarantine.
        storage: options of the object store.

    Returns:
        Number of records, including replayed ones; 0 if there is no quarantine.

    Raises:
        DeltaError, OSError, TableError: the log or the catalog cannot be read.
    """
    if is_iceberg(table):
        stored = open_stored(table, storage or {})
        return stored.count() if stored else 0
    try:  # the question whether there is a table would stop all threads until the store answers
        found = DeltaTable(table, storage_options=dict(storage or {}) or None)
    except TableNotFoundError:
        return 0
    files = pa.table(found.get_add_actions(flatten=True))
    return int(pc.sum(files.column("num_records")).as_py() or 0)
