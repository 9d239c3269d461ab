"""Removes double rows from a table, in one commit that changes nothing else.

One copy of each row stays: until the commit, the table must have the files that keep it and the files that lose it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_sink.errors import TableError, plain
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_files import DeltaFiles
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.rollback_detection import REPAIR
from spark_sink.lake.iceberg.stored_files import IcebergFiles
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.matching_tables import refuse_quarantine
from spark_sink.lake.repairable_double_rows import DoubleRows, find_doubles
from spark_sink.lake.table_addresses import Storage, is_iceberg, table_uri
from spark_sink.lake.table_storage import is_delta_table, no_delta_table

_ATTEMPTS = 5


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

    @property
    def repeated(self) -> int:
        """Number of rows that stay although they equal another row of their file."""
        return sum(one.repeated for one in self.files)


def repair(
    table: str, storage: Storage | None = None, *, apply: bool = True, within_files: bool = False
) -> Iterator[Repaired]:
    """Remove double rows from a table, and then from its quarantine.

    Args:
        table: address of the table.
        storage: options of the object store.
        apply: write the change; otherwise only report it.
        within_files: also remove rows that equal another row of the same file. A query that makes several equal rows of
            one record writes such rows, and an OPTIMIZE that joins both copies of a file makes them.

    Yields:
        The table, and its quarantine if there is one, each when it is done.

    Raises:
        TableError: there is no table, it is a quarantine, it cannot be read, or its rows have no identifying columns;
            it was not changed.
    """
    refuse_quarantine("repair", table, storage)
    uri = iceberg_address(table) if is_iceberg(table) else table_uri(table)
    for address in (uri, quarantine_of(uri)):
        with _refused(address):
            if address != uri and not _is_there(address, storage):
                return
            place = IcebergFiles(address, storage) if is_iceberg(address) else DeltaFiles(address, storage)
            found = _remove_doubles(place, apply=apply, within_files=within_files)
        yield Repaired(table=address, files=found)


def _is_there(address: str, storage: Storage | None) -> bool:
    if is_iceberg(address):
        return open_stored(address, storage or {}) is not None
    return is_delta_table(address, storage)


def _remove_doubles(place: DeltaFiles | IcebergFiles, *, apply: bool, within_files: bool) -> list[DoubleRows]:
    for _ in range(_ATTEMPTS):
        found = list(find_doubles(place, within_files=within_files))
        losing = [one for one in found if one.dropped]
        if not apply or not losing:
            return found
        note = {"kind": REPAIR, "rows": 0, "rows_taken_out": sum(len(one.dropped) for one in losing)}
        if place.take_out(losing, note):
            return found
    raise TableError("other writers rewrote its files each time; stop their OPTIMIZE or compaction, and try again")


@contextmanager
def _refused(uri: str) -> Iterator[None]:
    """Convert errors of libraries into one sentence with the address."""
    try:
        yield
    except TableNotFoundError as error:
        raise TableError(no_delta_table(uri)) from error
    except (DeltaError, OSError, pa.ArrowException, OverflowError, ValueError, TableError) as error:
        raise TableError(f"{uri}: the table was not repaired: {plain(error)}") from error
