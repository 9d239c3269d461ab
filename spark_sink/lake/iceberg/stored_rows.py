"""Reads what an Iceberg table and its quarantine have: positions, and the offsets of the rows, of one snapshot."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from spark_sink.errors import TableError, plain_with_class
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.catalogs import identifier, is_absent, open_catalog
from spark_sink.lake.iceberg.data_entries import location
from spark_sink.lake.iceberg.positions_in_table_properties import PROPERTY, GroupState, State, decode
from spark_sink.lake.iceberg.repeated_requests import answered
from spark_sink.lake.iceberg.rollback_detection import refuse_lost_positions, refuse_other_past
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.vacuumed_files import with_way_out

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import FileScanTask, Table

# pyiceberg reads all files that it is given, however slowly their rows are taken.
_FILES_AT_ONCE, _BYTES_AT_ONCE = 8, 32 << 20
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """A table at one snapshot.

    Attributes:
        name: in messages.
        table: pyiceberg's table.
        state: positions of the groups.
        manifests: the snapshot's manifests, which list its files; None if `rows` is going to read their list.
    """

    name: str
    table: "Table"
    state: State
    manifests: "Sequence[ManifestFile] | None" = None

    @property
    def version(self) -> int:
        """The newest sequence number: every commit with a snapshot raises it, and no rollback lowers it."""
        return self.table.metadata.next_sequence_number() - 1

    def rows(self, columns: Sequence[str], only: "str | BooleanExpression" = "true") -> Iterator[pa.RecordBatch]:
        """Read columns of all rows, or of those that fit a condition of pyiceberg's.

        Raises:
            TableError: the rows cannot be read, or lack a column.
        """
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.table import ManifestGroupPlanner

        from spark_sink.lake.iceberg.file_scan import file_scan

        try:
            scan = self.table.scan(only, tuple(columns))
            wanted = schema_to_pyarrow(scan.projection())
            reader = file_scan(
                scan.table_metadata, scan.io, scan.projection(), scan.row_filter, case_sensitive=scan.case_sensitive
            )
            # The scan itself may let a REST catalog list the files, and the catalog lists those of the newest snapshot.
            planner = ManifestGroupPlanner(
                scan.table_metadata, scan.io, scan.row_filter, case_sensitive=scan.case_sensitive
            )
            listed = self._listed() if self.manifests is None else self.manifests
            for files in _few(planner.plan_files(listed)):
                with _naming_file(reader, files):
                    for batch in reader.to_record_batches(files):
                        yield batch.cast(wanted)
        except Exception as error:  # each catalog and each store has its own errors
            raise _unreadable_rows(self.name, error) from error

    def count(self) -> int:
        """Count the rows by the table's manifests.

        Raises:
            TableError: they cannot be read.
        """
        try:
            return int(self.table.scan().count())
        except Exception as error:  # each store has its own errors
            raise _unreadable(self.name, error) from error

    def _listed(self) -> "Sequence[ManifestFile]":
        snapshot = self.table.current_snapshot()
        return () if snapshot is None else snapshot.manifests(self.table.io)

    def with_manifests(self) -> "StoredTable":
        """Read the list of the manifests, so that `rows` does not need it.

        Raises:
            FileNotFoundError: an agent has expired the snapshot and deleted the list.
            TableError: the list cannot be read.
        """
        try:
            return replace(self, manifests=self._listed())
        except FileNotFoundError:
            raise
        except Exception as error:  # each store has its own errors
            raise _unreadable(self.name, error) from error


def open_to_read_later(address: str, storage: Storage) -> StoredTable | None:
    """Open a table whose rows may be read long after; arguments and errors are those of `open_stored`.

    Agents delete the list of the manifests when they expire a snapshot. They delete no manifest and no data file.

    Raises:
        TableError: also if the snapshots expired each time before they could be read.
    """
    gone: FileNotFoundError | None = None
    for _ in range(_ATTEMPTS):
        found = open_stored(address, storage)
        try:
            return found and found.with_manifests()
        except FileNotFoundError as error:  # expired since the line before
            gone = error
    raise TableError(
        f"{identifier(address).name}: its snapshots expired {_ATTEMPTS} times in a row before they could be read; read "
        "again, or let the agents compact less often (compactEvery)"
    ) from gone


def open_stored(address: str, storage: Storage, *, rolled_back: bool = False) -> StoredTable | None:
    """Open a table to read it; None if there is none. A catalog that does not exist is not created.

    Args:
        address: of the table.
        storage: options of the catalog.
        rolled_back: accept a table whose rows are not those of its positions.

    Raises:
        TableError: the table cannot be read, or its rows are not those of its positions.
    """
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    found = identifier(address)
    if is_absent(storage):
        return None
    catalog = open_catalog(found.catalog, storage)
    try:
        table = answered(found.name, lambda: catalog.load_table(found.path))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except Exception as error:  # each catalog has its own errors
        raise _unreadable(found.name, error) from error
    state = decode(table.metadata.properties.get(PROPERTY), found.name)
    (refuse_lost_positions if rolled_back else refuse_other_past)(found.name, table.metadata, state)
    return StoredTable(name=found.name, table=table, state=state)


def quarantined_rows(
    address: str, table: StoredTable, storage: Storage, columns: Sequence[str], *, gone: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read columns of all records that were ever quarantined.

    A commit of the table names its bad records, and the quarantine adds them in a separate commit. If a writer died
    between the two, the named files are also read.

    Args:
        address: of the table.
        table: the same table.
        storage: options of the catalog.
        columns: columns of the quarantine.
        gone: leave out named files that are gone.

    Raises:
        TableError: the quarantine cannot be read.
    """
    quarantine = open_stored(quarantine_of(address), storage)
    held: Mapping[str, GroupState] = {}
    if quarantine is not None:
        held = quarantine.state.groups
        yield from quarantine.rows(columns)
    for group, state in table.state.groups.items():
        known = held.get(group, GroupState()).positions
        lacking = (one for one in state.named if any(end > known.get(key, 0) for key, end in one.ends.items()))
        for place in (location(file) for one in lacking for file in one.files):
            try:
                found = table.table.io.new_input(place)
                if gone and not found.exists():
                    continue
                with found.open() as stream:
                    yield from pq.ParquetFile(stream).iter_batches(columns=list(columns))
            except (OSError, pa.ArrowException) as error:
                raise _unreadable_rows(place, error) from error


@contextmanager
def _naming_file(reader: "ArrowScan", files: "Sequence[FileScanTask]") -> Iterator[None]:
    """Add the name of the file that cannot be read: pyiceberg reads files as buffers, so Arrow's errors have none.

    Raises:
        TableError: the block has failed, and its error names none of the files.
    """
    try:
        yield
    except Exception as error:  # each store has its own errors
        if any(one.file.file_path.rpartition("/")[2] in str(error) for one in files):
            raise
        place = _unreadable_file(reader, files)
        if place is None:  # what a store or a proxy gets wrong once is right at the second reading
            others = f" or one of the {len(files) - 1} files read with it" if len(files) > 1 else ""
            place = f"{files[0].file.file_path}{others}"
        raise TableError(f"{place}: {plain_with_class(error)}") from error


def _unreadable_file(reader: "ArrowScan", files: "Sequence[FileScanTask]") -> str | None:
    """Return the address of the first file that cannot be read by itself."""
    for one in files:
        try:
            for _ in reader.to_record_batches([one]):
                pass
        except Exception:  # noqa: BLE001 -- each store has its own errors
            return str(one.file.file_path)
    return None


def _few(tasks: "Iterable[FileScanTask]") -> "Iterator[list[FileScanTask]]":
    """Yield the files in groups that fit the memory together; a larger file is a group by itself.

    So is the first file, because rows are available only when all files of a group are read.
    """
    group: list[FileScanTask] = []
    size, most = 0, 1
    for one in tasks:
        if group and (len(group) == most or size + one.file.file_size_in_bytes > _BYTES_AT_ONCE):
            yield group
            group, size, most = [], 0, _FILES_AT_ONCE
        group.append(one)
        size += one.file.file_size_in_bytes
    if group:
        yield group


def _unreadable(name: str, error: Exception) -> TableError:
    return TableError(f"{name}: cannot be read: {plain_with_class(error)}")


def _unreadable_rows(name: str, error: Exception) -> TableError:
    return TableError(f"{name}: cannot be read: {with_way_out(plain_with_class(error))}")
