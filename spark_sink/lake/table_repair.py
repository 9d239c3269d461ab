"""Double rows taken out of a table, in one commit that changes nothing else.

A row stays once: the files that keep it must be in the table until the commit, as well as those that lose it.
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
    """What a repair does to one table.

    Attributes:
        table: address.
        files: those that lose rows, and those whose rows differ from rows of the same offset.
    """

    table: str
    files: Sequence[DoubleRows] = field(default_factory=tuple)

    @property
    def rows(self) -> int:
        """Rows that go."""
        return sum(len(one.dropped) for one in self.files)

    @property
    def different(self) -> int:
        """Rows that stay, although another one has the same offset, because their values differ."""
        return sum(one.different for one in self.files)


def repair(table: str, storage: Storage | None = None, *, apply: bool = True) -> list[Repaired]:
    """Take double rows out of a table and out of its quarantine.

    Args:
        table: address of the table.
        storage: options of the object store.
        apply: write it; otherwise only say what would go.

    Returns:
        The table, and its quarantine where there is one.

    Raises:
        TableError: there is no table, it cannot be read, or its rows cannot be told apart; nothing was changed.
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
    """Takes out what an OPTIMIZE of another writer has doubled, as soon as a commit of ours sees it in the log.

    Args:
        uri: of the table.
        log: of the table.
        storage: options of the object store.
    """

    def __init__(self, uri: str, log: TransactionLog, storage: Storage | None = None) -> None:
        self._uri = uri
        self._log = log
        self._storage = storage

    def run(self, handle: DeltaTable) -> int:
        """Look at the files that the log names as doubled, and take their double rows out.

        Args:
            handle: of the table; it stands at the newest version afterwards.

        Returns:
            Rows that went. Whatever prevents it is logged and no error: the batch before it is committed.
        """
        if not self._log.doubled:
            return 0
        looked_at: set[str] = set()

        def doubled() -> set[str]:
            # A file may have been rewritten since: what took its place is doubled as well.
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
    """Turn what a library says into one sentence with the address in it."""
    try:
        yield
    except TableNotFoundError as error:
        raise TableError(f"{uri}: there is no Delta table") from error
    except (DeltaError, OSError, pa.ArrowException, TableError) as error:
        raise TableError(f"{uri}: the table was not repaired: {plain(error)}") from error
