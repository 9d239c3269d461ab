"""Writes rows for a table: Arrow batches become Parquet files with statistics of their offsets.

It runs in the tasks. The files are in the table's folder, but no reader sees them before a commit names them; `VACUUM`
removes the files of failed tasks.
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from spark_sink.errors import SchemaError, TableError, plain
from spark_sink.formats.calendar_dates import rows_outside
from spark_sink.formats.variant_type import VARIANT, is_variant, with_variants
from spark_sink.lake import row_group_budget
from spark_sink.lake.file_statistics import FileStatistics
from spark_sink.lake.partition_folders import make_folder, new_file
from spark_sink.lake.row_offsets import merge_spans, spans_of
from spark_sink.lake.table_contract import KEYS, DataFile, Span
from spark_sink.lake.table_storage import address_of
from spark_sink.ranges.batch_offset import TopicPartition

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of rows in files.

    Attributes:
        partition_columns: the table's partition columns; not in the files, but in the log.
        compression: of the Parquet pages.
        file_bytes: a file is closed when its columns, uncompressed, have reached this size.
        group_bytes: rows are buffered until a row group has this size, uncompressed; earlier if all open files of the
            task buffer more than `row_group_budget.BUDGET_BYTES`.
    """

    partition_columns: tuple[str, ...] = ()
    compression: str = "zstd"
    file_bytes: int = 512 << 20
    group_bytes: int = 32 << 20


def normal_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns in the form of a table: microseconds in UTC, plain strings, all nullable.

    Fields inside structs, too.

    Raises:
        SchemaError: a column that identifies the record is missing or has another type.
    """
    for name, kind in KEYS.items():
        found = schema.field(name).type if name in schema.names else None
        if found is None or _normal_type(found) != kind:
            raise SchemaError(
                f"column {name!r} is {found or 'missing'}, need {kind}: the sink tells records apart by topic, "
                "partition and offset, so a query must pass these columns through"
            )
    return normal_columns(schema)


def normal_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns in the same form; they need not identify records."""
    return pa.schema([_normal_field(field) for field in schema])


def _normal_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return _normal_type(kind.value_type)
    return VARIANT if is_variant(kind) else _normal_nested(kind)


def _normal_nested(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_normal_field(one) for one in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_normal_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_normal_type(kind.key_type), _normal_field(kind.item_field))
    return kind


def _normal_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _normal_type(field.type))


def check_partition_columns(schema: pa.Schema, columns: Collection[str]) -> None:
    """Check that rows can be partitioned by these columns.

    Raises:
        SchemaError: a column is missing, or its type has no text.
    """
    for name in columns:
        if name not in schema.names:
            raise SchemaError(f"partition column {name!r} is not among the columns {schema.names}")
        _partition_text(pa.chunked_array([], schema.field(name).type))


def refuse_unidentified(rows: pa.Table) -> None:
    """Refuse rows without the values that tell records apart.

    Raises:
        TableError: a row has no topic, partition or offset.
    """
    if any(rows.column(name).null_count for name in KEYS):
        raise TableError("a row has no topic, no partition or no offset: it would look like a record written twice")


class Landing:
    """Writes the rows of one task.

    Args:
        files: file system rooted at the table.
        schema: schema of the table's rows, from `normal_schema`.
        layout: layout of the files.

    Attributes:
        files: file system rooted at the folder of the data files.
        schema: schema of the files.
    """

    def __init__(self, files: pa_fs.FileSystem, schema: pa.Schema, layout: Layout | None = None) -> None:
        self.files = files
        self.schema = schema
        self._layout = layout or Layout()
        self._open: dict[Values, _OpenFile] = {}
        self._done: list[DataFile] = []
        check_partition_columns(schema, self._layout.partition_columns)

    @property
    def is_partitioned(self) -> bool:
        """Whether the files of a table hold the rows of one partition each."""
        return bool(self._layout.partition_columns)

    def add(self, file: DataFile) -> None:
        """Add a file that another writer made in the folder, with these columns; not for a partitioned table."""
        self._done.append(file)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows.

        Raises:
            SchemaError: the columns differ from those of the first batch.
            TableError: a row has no topic, partition or offset, or the storage refused.
        """
        if not batch.num_rows:
            return
        if batch.schema.names != self.schema.names:
            raise SchemaError(f"columns {batch.schema.names} came after {self.schema.names} in one task")
        table = with_variants(pa.Table.from_batches([batch]), self.schema)
        if not table.schema.equals(self.schema, check_metadata=True):
            table = table.cast(self.schema)
        refuse_unidentified(table)
        written = 0
        for values, rows in _split(table, self._layout.partition_columns):
            file = self._open.get(values)
            if file is None:
                file = self._open[values] = _OpenFile(self.files, rows.schema, self._layout, values)
            written += (size := rows.nbytes)
            if file.write(rows, size):
                self._done.append(self._open.pop(values).close())
        row_group_budget.limit(written)

    def close(self) -> list[DataFile]:
        """Finish the files.

        Raises:
            TableError: the storage refused.
        """
        self._done += [file.close() for file in self._open.values()]
        self._open.clear()
        return self._done


class _OpenFile:
    """One Parquet file being written."""

    def __init__(self, files: pa_fs.FileSystem, schema: pa.Schema, layout: Layout, values: Values) -> None:
        self._files = files
        self._layout = layout
        self._values = dict(zip(layout.partition_columns, values, strict=True))
        self._path = new_file(self._values)
        self._place = address_of(files, self._path)  # a local disk does not say where it is full
        self._held: list[pa.Table] = []
        self.held_bytes = self._bytes = 0
        self._spans: dict[TopicPartition, Span] = {}
        self._stats = FileStatistics()
        self._columns = [name for name in schema.names if name not in layout.partition_columns]
        self._schema = schema.empty_table().select(self._columns).schema
        self._writer: pq.ParquetWriter | None = None
        row_group_budget.count(self)

    def write(self, rows: pa.Table, size: int) -> bool:
        """Write rows of that many bytes; return True if the file is large enough."""
        self._held.append(rows)
        self.held_bytes += size
        self._bytes += size
        if self.held_bytes >= self._layout.group_bytes:
            self.flush()
        return self._bytes >= self._layout.file_bytes

    def close(self) -> DataFile:
        """Finish the file and return its description."""
        self.flush()
        with storage_errors(self._place):
            self._opened().close()
            size = close_stream(self._stream, self._files, self._path)
        return DataFile(
            path=self._path,
            size_bytes=size,
            spans=self._spans,
            partition_values=self._values,
            stats=self._stats.json(self._columns),
            written_ms=int(time.time() * 1000),
        )

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        held, self._held, self.held_bytes = self._held, [], 0
        if held:
            rows = pa.concat_tables(held)
            spans = spans_of(rows)
            merge_spans(self._spans, spans)
            self._stats.add(rows, spans)
            with storage_errors(self._place):
                self._opened().write_table(rows.select(self._columns))

    def _opened(self) -> pq.ParquetWriter:
        """Return the writer; the file is opened at its first row group, as a batch may have thousands of partitions."""
        if self._writer is None:
            make_folder(self._files, self._path)
            self._stream = self._files.open_output_stream(self._path)
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                compression=self._layout.compression,
                use_dictionary=[name for name in ("topic", "partition") if name in self._columns],
            )
        return self._writer


def _split(rows: pa.Table, columns: tuple[str, ...]) -> Iterator[tuple[Values, pa.Table]]:
    if not columns:
        yield (), rows
        return
    keys = pa.table([_partition_text(rows.column(name)) for name in columns], names=list(columns))
    for value in keys.group_by(list(columns)).aggregate([]).to_pylist():
        mask = None
        for name in columns:
            column, wanted = keys.column(name), value[name]
            hit = pc.is_null(column) if wanted is None else pc.fill_null(pc.equal(column, wanted), fill_value=False)
            mask = hit if mask is None else pc.and_(mask, hit)
        yield tuple(value[name] for name in columns), rows.filter(mask)


def _partition_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if not (
        pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind)
    ):
        raise SchemaError(f"a partition column is {kind}, need text, a whole number, a date or a truth value")
    if pa.types.is_date32(kind) and rows_outside([column], pa.schema([("", kind)])):
        raise SchemaError("a partition column has a date outside the years 1 to 9999, which no reader of Delta accepts")
    return column.cast(pa.string())


def close_stream(stream: pa.NativeFile, files: pa_fs.FileSystem, path: str) -> int:
    """Close a written file, and return its size: readers cannot open a file of another size than the table says.

    Raises:
        TableError: the storage has another size.
    """
    size: int = stream.tell()
    stream.close()
    if (stored := files.get_file_info(path).size) != size:
        place = address_of(files, path)
        raise TableError(f"{place}: {size} bytes were written, and {stored or 0} are stored; nothing was committed")
    return size


class storage_errors:  # noqa: N801 -- reads as the statement it is
    """`with storage_errors(path):` converts errors of the storage into one sentence."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise TableError(f"{self._path}: the table's storage refused: {plain(error)}") from error
