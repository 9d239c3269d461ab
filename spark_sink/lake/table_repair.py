"""Removes double rows from a table, in one commit that changes nothing else.

One copy of each row stays: until the commit, the table must have the files that keep it and the files that lose it.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.errors import TableError, plain
from spark_sink.formats.quarantined_rows import quarantine_of
from spark_sink.lake.delta_transactions import TransactionLog
from spark_sink.lake.double_rows import DoubleRows, find_doubles
from spark_sink.lake.fenced_replacement import replace_files
from spark_sink.lake.file_rewrite import write_without
from spark_sink.lake.table_storage import Storage, filesystem, table_uri

_ATTEMPTS = 5

_log = logging.getLogger("azimuth.sink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The repair of one table.

    Attributes:
        table: address.
        files: the files that lose rows, and those with rows that differ from rows of the same offset.
    """

    table: str
    files: Sequence[DoubleRows] = field(default_factory=tuple)

    @property
    def rows(self) -> int:
        """Number of removed rows."""
        return sum(len(one.dropped) for one in self.files)

    @property
    def different(self) -> int:
        """Number of rows that stay because their values differ from another row of the same offset."""
        return sum(one.different for one in self.files)


def repair(table: str, storage: Storage | None = None, *, apply: bool = True) -> list[Repaired]:
    """Remove double rows from a table and from its quarantine.

    Args:
        table: address of the table.
        storage: options of the object store.
        apply: write the change; otherwise only report it.

    Returns:
        The table, and its quarantine if there is one.

    Raises:
        TableError: there is no table, it cannot be read, or its rows have no identifying columns; nothing was changed.
    """
    uri, options = table_uri(table), dict(storage or {}) or None
    done = []
    for address in (uri, quarantine_of(uri)):
        with _refused(address):
            if address == uri or DeltaTable.is_deltatable(address, options):
                handle = DeltaTable(address, storage_options=options)
                done.append(Repaired(table=address, files=_take_out(address, handle, storage, apply=apply)))
    return done


class DoubleWatch:
    """Removes rows that an OPTIMIZE of another writer has doubled, as soon as one of our commits sees it in the log.

    Args:
        uri: address of the table.
        log: log of the table.
        storage: options of the object store.
    """

    def __init__(self, uri: str, log: TransactionLog, storage: Storage | None = None) -> None:
        self._uri = uri
        self._log = log
        self._storage = storage

    def run(self, handle: DeltaTable) -> int:
        """Check the files that the log shows as doubled, and remove their double rows.

        Args:
            handle: handle of the table; afterwards it is at the newest version.

        Returns:
            Number of removed rows. A failure is only logged, because the batch before it is committed.
        """
        if not self._log.doubled:
            return 0
        looked_at: set[str] = set()

        def doubled() -> set[str]:
            # If a file has been rewritten, the file that replaced it is doubled as well.
            self._log.refresh(handle.version())
            looked_at.update(self._log.doubled)
            return looked_at

        try:
            with _refused(self._uri):
                handle.update_incremental()
                found = Repaired(table=self._uri, files=_take_out(self._uri, handle, self._storage, doubled))
        except TableError as error:
            _log.warning(
                "%s: an OPTIMIZE of another writer committed files that were rewritten before, and rows may be there "
                "twice; `azimuth repair %s` takes them out: %s",
                self._uri,
                self._uri,
                error,
            )
            return 0
        finally:
            self._log.doubled.difference_update(looked_at)
        if found.rows:
            _log.warning(
                "%s: an OPTIMIZE of another writer committed files that were rewritten before; %d rows that it doubled "
                "were taken out",
                self._uri,
                found.rows,
            )
        return found.rows


def _take_out(
    uri: str,
    handle: DeltaTable,
    storage: Storage | None,
    only: Callable[[], Collection[str]] | None = None,
    *,
    apply: bool = True,
) -> list[DoubleRows]:
    files = filesystem(uri, storage)
    for _ in range(_ATTEMPTS):
        found = list(find_doubles(files, handle, only() if only else None))
        losing = [one for one in found if one.dropped]
        if not apply or not losing:
            return found
        rewrites = [write_without(files, one.file, one.dropped) for one in losing]
        rests_on = {path for one in losing for path in one.kept_in}
        note = {"kind": "repair", "rows": 0, "rows_taken_out": sum(len(one.dropped) for one in losing)}
        if replace_files(handle, rewrites, note, rests_on=rests_on):
            return found
    raise TableError("other writers rewrote its files each time; stop their OPTIMIZE, and try again")


@contextmanager
def _refused(uri: str) -> Iterator[None]:
    """Convert errors of libraries into one sentence with the address."""
    try:
        yield
    except TableNotFoundError as error:
        raise TableError(f"{uri}: there is no Delta table") from error
    except (DeltaError, OSError, pa.ArrowException, TableError) as error:
        raise TableError(f"{uri}: the table was not repaired: {plain(error)}") from error
