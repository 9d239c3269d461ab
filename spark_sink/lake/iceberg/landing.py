"""The place and the columns of the files that tasks write for an Iceberg table."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pa_fs

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.columns import field_ids, with_field_ids
from spark_sink.lake.iceberg.data_entries import with_place
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.table_contract import DataFile

if TYPE_CHECKING:
    from pyiceberg.table import Table

_DATA = "data"


def folder_of(table: "Table") -> str:
    """Return the full address of the folder of the table's data files."""
    return f"{table.location().rstrip('/')}/{_DATA}"


def files_of(table: "Table") -> pa_fs.FileSystem:
    """Return a file system rooted at the folder of the table's data files.

    Raises:
        TableError: the table's files are not accessed by Arrow.
    """
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 -- loads slowly

    if not isinstance(table.io, PyArrowFileIO):
        raise TableError(
            f"{'.'.join(table.name())}: files are accessed by {type(table.io).__name__}, need PyArrowFileIO; leave out "
            "catalog.py-io-impl"
        )
    scheme, netloc, path = PyArrowFileIO.parse_location(folder_of(table), table.io.properties)
    files = table.io.fs_by_scheme(scheme, netloc)
    if scheme == "file":  # object stores have no folders
        files.create_dir(path, recursive=True)
    return pa_fs.SubTreeFileSystem(path, files)


class IcebergLanding(Landing):
    """Writes the rows of one task, with the table's field ids.

    Args:
        table: the table, which has the columns.
        schema: schema of the rows, from `normal_schema`.
        layout: layout of the files.
    """

    def __init__(self, table: "Table", schema: pa.Schema, layout: Layout) -> None:
        columns = with_field_ids(schema, table.schema())
        super().__init__(files_of(table), columns, layout)
        self._folder, self._ids = folder_of(table), field_ids(columns)

    def close(self) -> list[DataFile]:
        """Finish the files.

        Raises:
            TableError: the storage refused.
        """
        return [with_place(file, self._folder, self._ids) for file in super().close()]
