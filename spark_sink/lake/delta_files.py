"""The data files of a Delta table, read one by one and replaced without some of their rows."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from spark_sink.errors import TableError, plain
from spark_sink.formats.variant_type import arrow_columns
from spark_sink.lake.fenced_replacement import replace_files
from spark_sink.lake.file_rewrite import TableFile, refuse_unknown_features, table_files, write_without
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.newest_version import newest_handle
from spark_sink.lake.repairable_double_rows import DoubleRows
from spark_sink.lake.table_addresses import Storage
from spark_sink.lake.table_storage import filesystem


class DeltaFiles:
    """The data files of a Delta table, implements `StoredFiles`.

    Args:
        uri: address of the table.
        storage: options of the object store.

    Raises:
        TableNotFoundError: there is no table.
        TableError: its newest version cannot be seen.
    """

    def __init__(self, uri: str, storage: Storage | None) -> None:
        self._handle = newest_handle(uri, storage)
        self._files = filesystem(uri, storage)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns.

        Raises:
            TableError: the table has a feature by which a file means other rows or columns than its own.
        """
        refuse_unknown_features(self._handle)
        if (mode := self._handle.metadata().configuration.get("delta.columnMapping.mode", "none")) != "none":
            raise TableError(f"the table maps its columns by {mode}, so columns in its files may have other names")
        return arrow_columns(self._handle.schema())

    def files(self) -> Iterable[TableFile]:
        """Return the files."""
        return table_files(self._handle)

    def read(self, file: TableFile, names: Sequence[str]) -> pa.Table:
        """Read columns of a file, with the partition values from the log.

        Raises:
            TableError: the file cannot be read.
        """
        schema, values = arrow_columns(self._handle.schema()), dict(file.values)
        wanted = [schema.field(name) for name in names]
        try:
            with self._files.open_input_file(file.stored) as stream:
                source = open_parquet(stream)
                there = [one.name for one in wanted if one.name in source.schema_arrow.names and one.name not in values]
                rows = source.read(columns=there)
                count = source.metadata.num_rows
            return pa.table({one.name: _column(rows, one, values, count) for one in wanted})
        except (OSError, pa.ArrowException) as error:
            raise TableError(f"{file.path}: cannot be read: {plain(error)}") from error

    def take_out(self, losing: Sequence[DoubleRows], note: Mapping[str, object]) -> bool:
        """Remove rows in one commit; return whether that was done. If not, the files are those of the newest version.

        Args:
            losing: files with the rows to remove.
            note: JSON for the table's history.

        Raises:
            TableError: the log has a path in a form that no action can name.
        """
        if strange := [one.file.path for one in losing if not one.file.path.isascii() or " " in one.file.path]:
            raise TableError(f"the log has a path that is not escaped, {strange[0]!r}; nothing was changed")
        schema = arrow_columns(self._handle.schema())
        rewrites = [write_without(self._files, one.file, one.dropped, schema) for one in losing]
        return replace_files(self._handle, rewrites, note, rests_on={path for one in losing for path in one.kept_in})


def _column(rows: pa.Table, field: pa.Field, values: Mapping[str, str | None], count: int) -> pa.ChunkedArray:
    if field.name in values:
        return pa.chunked_array([pa.repeat(pa.scalar(values[field.name], pa.string()).cast(field.type), count)])
    if field.name in rows.column_names:
        chunks = [_decoded(chunk, field.type) for chunk in rows.column(field.name).chunks]
        return pa.chunked_array(chunks, field.type)
    return pa.chunked_array([pa.nulls(count, field.type)])


def _decoded(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):  # of texts in a form (string_view) that Arrow's own cast does not decode
        return chunk.dictionary.cast(kind).take(chunk.indices)
    return chunk.cast(kind)
