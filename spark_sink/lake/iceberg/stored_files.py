"""The data files of an Iceberg table, read one by one and written again without some of their rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from spark_sink.errors import TableError, plain_with_class
from spark_sink.lake.iceberg.columns import arrow_columns
from spark_sink.lake.iceberg.file_replacement import Replacement, has_deletes, replace_files
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_contract import DataFile

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.table import FileScanTask, Table

    from spark_sink.lake.repairable_double_rows import DoubleRows


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A data file as a table lists it; a table may list the same file several times.

    Attributes:
        task: pyiceberg's task that reads it.
        number: of the file, in the order of the list.
    """

    task: "FileScanTask"
    number: int

    @property
    def path(self) -> str:
        """Its full address."""
        return str(self.task.file.file_path)

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return int(self.task.file.record_count)

    @property
    def entry(self) -> "Entry":
        """Its entry in the manifest."""
        return self.task.file


class IcebergFiles:
    """The data files of an Iceberg table, implements `StoredFiles`.

    Args:
        address: of the table.
        storage: options of the catalog.

    Raises:
        TableError: there is no table, it was rolled back, or it cannot be read.
    """

    def __init__(self, address: str, storage: Storage | None) -> None:
        self._handle = IcebergTable(address, "", storage)
        self._listed: list[ListedFile] = []
        self._table = self._look()

    @property
    def schema(self) -> pa.Schema:
        """The table's columns.

        Raises:
            TableError: deletes by row apply to its files, so that a file has other rows than the table.
        """
        refuse_deletes(self._table)
        return arrow_columns(self._table.schema())

    def files(self) -> Iterable[ListedFile]:
        """Return the files."""
        self._listed = listed_files(self._table)
        return self._listed

    def read(self, file: ListedFile, names: Sequence[str]) -> pa.Table:
        """Read columns of a file."""
        return read_file(self._table, file, names)

    def take_out(self, losing: "Sequence[DoubleRows]", note: Mapping[str, object]) -> bool:
        """Remove rows in one commit; return whether that was done. If not, the files are those of the newest version.

        Args:
            losing: files with the rows to remove.
            note: JSON for the table's history.
        """
        dropped = {one.file.number: one.dropped for one in losing}
        paths = {one.file.path for one in losing}
        # A commit removes a file by its path, and with it the other entries of the same file.
        rewritten = [one for one in self._listed if one.path in paths]
        added = write_without(self._table, rewritten, dropped)
        kept = frozenset(path for one in losing for path in one.kept_in)
        change = Replacement(removed=[one.entry for one in rewritten], added=added, note=note, rests_on=kept)
        if replace_files(self._handle.name, self._look, change):
            return True  # without another look, whose failure would look like that of the repair
        self._table = self._look()
        return False

    def _look(self) -> "Table":
        self._handle.refresh()
        if (found := self._handle.stored) is None:
            raise TableError(f"{self._handle.name}: there is no Iceberg table")
        return found.table


def refuse_deletes(table: "Table") -> None:
    """Refuse a table with deletes by row: in new files these rows would be there again.

    Raises:
        TableError: it has some, or its manifests cannot be read.
    """
    with _listing():
        found = has_deletes(table)
    if found:
        raise TableError(
            "the table has deletes by row of another engine; nothing was changed. Run that engine's rewrite_data_files "
            "with delete-file-threshold=1, and try again"
        )


def listed_files(table: "Table", only: Any = "true") -> list[ListedFile]:  # noqa: ANN401 -- pyiceberg's condition
    """Return the data files of the current snapshot, or those that may have rows that fit a condition.

    Raises:
        TableError: the manifests cannot be read.
    """
    with _listing():
        return [ListedFile(task, number) for number, task in enumerate(table.scan(only).plan_files())]


@contextmanager
def _listing() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each store has its own errors
        raise TableError(f"its list of files cannot be read: {plain_with_class(error)}") from error


def read_file(table: "Table", file: ListedFile, names: Sequence[str]) -> pa.Table:
    """Read columns of a file, in the order of its rows and with the table's types.

    Raises:
        TableError: the file cannot be read.
    """
    from pyiceberg.table import FileScanTask

    from spark_sink.lake.iceberg.file_scan import file_scan

    schema = arrow_columns(table.schema())
    wanted = pa.schema([schema.field(name) for name in names])
    whole = FileScanTask(file.entry)  # without the condition by which it was found
    try:
        scan = file_scan(table.metadata, table.io, table.schema().select(*names))
        return scan.to_table([whole]).select(wanted.names).cast(wanted)
    except Exception as error:  # each store has its own errors
        raise TableError(f"{file.path}: cannot be read: {plain_with_class(error)}") from error


def write_without(
    table: "Table", files: Iterable[ListedFile], dropped: Mapping[int, Sequence[int]]
) -> Sequence[DataFile]:
    """Write the rows of files without some of them into new files, which no commit names yet.

    Args:
        table: the table.
        files: to read, one at a time.
        dropped: positions of the rows to leave out, by number of the file.

    Raises:
        TableError: a file has fewer or more rows than the table lists, or the storage refused.
    """
    columns = arrow_columns(table.schema())
    landing = IcebergLanding(table, columns, Layout())
    for one in files:
        rows = read_file(table, one, columns.names)
        if rows.num_rows != one.rows:
            raise TableError(f"{one.path}: {rows.num_rows} rows were read of {one.rows}; nothing was changed")
        kept = np.ones(rows.num_rows, dtype=bool)
        kept[list(dropped.get(one.number, ()))] = False
        for batch in rows.filter(pa.array(kept)).to_batches():
            landing.write(batch)
    return landing.close()
