"""The place and the columns of the files that tasks write for an Iceberg table."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pa_fs

from spark_sink.errors import TableError
from spark_sink.lake.iceberg.columns import field_ids, with_field_ids
from spark_sink.lake.iceberg.data_entries import Partition, with_place
from spark_sink.lake.iceberg.partition_terms import Values, check_terms, partitioned, terms_of
from spark_sink.lake.parquet_landing import Landing, Layout
from spark_sink.lake.table_contract import DataFile

if TYPE_CHECKING:
    from pyiceberg.table import Table

_DATA, _DATA_PATH = "data", "write.data.path"


def folder_of(table: "Table") -> str:
    """Return the full address of the folder of the table's data files.

    Raises:
        TableError: the table's property for it is no full address, which readers elsewhere would look for in their own
            folder.
    """
    given = table.properties.get(_DATA_PATH, "")
    if given and "://" not in given and not given.startswith("/"):
        raise TableError(f"{'.'.join(table.name())}: its property {_DATA_PATH} is {given!r}, need a full address")
    return given.rstrip("/") or f"{table.location().rstrip('/')}/{_DATA}"


def files_of(table: "Table") -> pa_fs.FileSystem:
    """Return a file system rooted at the folder of the table's data files.

    Raises:
        TableError: the table's files are not accessed by Arrow, or their folder has no full address.
    """
    from pyiceberg.io.pyarrow import PyArrowFileIO

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
    """Writes the rows of one task, with the table's field ids, and each partition to files of its own.

    Args:
        table: the table, which has the columns.
        schema: schema of the rows, from `normal_schema`.
        layout: layout of the files.
    """

    def __init__(self, table: "Table", schema: pa.Schema, layout: Layout) -> None:
        columns = with_field_ids(schema, table.schema())
        super().__init__(files_of(table), columns, layout)
        self._folder, self._ids = folder_of(table), field_ids(columns)
        self._spec, self._terms = table.spec().spec_id, terms_of(table.spec(), table.schema()) or ()
        self._parts: dict[Values, Landing] = {}
        check_terms(schema, self._terms)

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has partitions."""
        return bool(self._terms)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows.

        Raises:
            SchemaError: the columns differ from those of the first batch.
            TableError: a row has no topic, partition or offset, or the storage refused.
        """
        if not self._terms or batch.schema.names != self.schema.names:
            super().write(batch)
            return
        for values, rows in partitioned(pa.Table.from_batches([batch]).cast(self.schema), self._terms):
            part = self._parts.setdefault(values, Landing(self.files, self.schema, self._layout))
            for one in rows.to_batches():
                part.write(one)

    def close(self) -> list[DataFile]:
        """Finish the files.

        Raises:
            TableError: the storage refused.
        """
        found: list[tuple[Values, DataFile]] = [((), file) for file in super().close()]
        found += [(values, file) for values, part in self._parts.items() for file in part.close()]
        self._parts.clear()
        return [with_place(file, self._folder, self._ids, Partition(self._spec, values)) for values, file in found]
