"""Rewrites files of a table: compacts small ones, or leaves out some rows of one. The caller commits."""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from spark_sink.errors import TableError
from spark_sink.lake.file_statistics import FileStatistics
from spark_sink.lake.foreign_parquet import open_parquet, with_times_of, without_views
from spark_sink.lake.parquet_landing import close_stream, storage_errors
from spark_sink.lake.partition_folders import make_folder, new_file
from spark_sink.lake.table_storage import address_of

_GROUP_BYTES = 8 << 20
# Small batches are decoded into memory that is used again. A batch of all rows of a file needs new memory from the
# system, and so does one that is decoded by several threads; that took longer than the decoding.
_BATCH_ROWS = 8192
_MANY = 16
# Features with which a file means exactly its rows, and its path and statistics describe it completely.
_KNOWN_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "timestampNtz",
        "variantType",
        "variantType-preview",
        "vacuumProtocolCheck",
    }
)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.=/-]+")  # a log encodes other characters in its own way
_PARTITION = "partition."

Values = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file in the table.

    Attributes:
        path: path in the log, relative to the table.
        size_bytes: size of the file.
        values: values of the partition columns, which are not in the file.
        rows: rows in the file; 0 if the log does not have the number.
    """

    path: str
    size_bytes: int
    values: Values
    rows: int = 0

    @property
    def stored(self) -> str:
        """The path in the table's file system: a log encodes percent signs and spaces as in a URL."""
        return unquote(self.path)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files to remove, and the files that replace them."""

    adds: Sequence[AddAction]
    removes: Sequence[RemoveAction]


def plan_rewrites(handle: DeltaTable, target_bytes: int) -> list[list[TableFile]]:
    """Choose files to compact, in groups of at least two files of one partition.

    A file with more rows than all smaller ones of its partition together waits until they have as many, if these are
    many. So a row is rewritten as often as the logarithm of the number of commits, not once in each compaction (O'Neil
    et al., The log-structured merge-tree, 1996).

    Args:
        handle: handle of the table.
        target_bytes: files are compacted up to this size; larger ones stay.

    Raises:
        TableError: the table has a feature that is not known here.
    """
    refuse_unknown_features(handle)
    found: dict[Values, list[TableFile]] = {}
    for file in table_files(handle):
        if file.size_bytes < target_bytes and _PLAIN_PATH.fullmatch(file.path):
            found.setdefault(file.values, []).append(file)
    bins = (one for files in found.values() for one in _bins(due_files(files), target_bytes))
    return [one for one in bins if len(one) > 1]


def due_files(files: Sequence[TableFile]) -> list[TableFile]:
    """Leave out files with more rows than all smaller ones together, while many smaller ones are left. Pure.

    Args:
        files: of one partition.
    """
    left = sorted(files, key=lambda one: one.rows)
    rows = sum(one.rows for one in left)
    while len(left) > _MANY and left[-1].rows > rows - left[-1].rows:
        rows -= left.pop().rows
    due = {one.path for one in left}
    return [one for one in files if one.path in due]


def _bins(files: Sequence[TableFile], target_bytes: int) -> list[list[TableFile]]:
    bins: list[list[TableFile]] = [[]]
    size_bytes = 0
    for file in files:
        if size_bytes + file.size_bytes > target_bytes:
            bins.append([])
            size_bytes = 0
        bins[-1].append(file)
        size_bytes += file.size_bytes
    return bins


def refuse_unknown_features(handle: DeltaTable) -> None:
    """Refuse a table whose files may mean more or less than their rows, such as one with deletion vectors.

    Raises:
        TableError: the table has a feature that is not known here.
    """
    protocol = handle.protocol()
    strange = {*(protocol.reader_features or ()), *(protocol.writer_features or ())} - _KNOWN_FEATURES
    if strange:
        raise TableError(f"the table has the feature {min(strange)}, which this version does not know")


def write_rewrite(files: pa_fs.FileSystem, small: Sequence[TableFile], schema: pa.Schema) -> Rewrite:
    """Write the rows of small files into as few files as their columns allow.

    Args:
        files: file system rooted at the table.
        small: files of one partition.
        schema: columns of the table.

    Raises:
        TableError: the storage refused.
        ArrowException: a time of a file does not fit the table's type.
    """
    now_ms = int(time.time() * 1000)
    values = dict(small[0].values)
    removes = [_remove(one, now_ms) for one in small]
    adds: list[AddAction] = []
    joined: _Joined | None = None
    for one in small:
        with storage_errors(address_of(files, one.path)), files.open_input_file(one.path) as stream:
            source = open_parquet(stream)
            found = source.schema_arrow
            columns = with_times_of(schema, found)
            if joined is None or not joined.schema.equals(columns):
                adds += [joined.close(now_ms)] if joined is not None else []
                joined = _Joined(files, columns, values)
            same = columns.equals(found)
            for batch in source.iter_batches(_BATCH_ROWS, use_threads=False):
                joined.write(batch if same else batch.cast(columns))
    if joined is not None:
        adds.append(joined.close(now_ms))
    return Rewrite(adds, removes)


def write_without(files: pa_fs.FileSystem, file: TableFile, dropped: Collection[int], schema: pa.Schema) -> Rewrite:
    """Write the rows of one file without some of them.

    Args:
        files: file system rooted at the table.
        file: file of the table.
        dropped: positions of the rows to leave out; if these are all rows, no file is written.
        schema: columns of the table.

    Raises:
        TableError: the storage refused.
        ArrowException: a time of the file does not fit the table's type.
    """
    now_ms = int(time.time() * 1000)
    with storage_errors(address_of(files, file.path)), files.open_input_file(file.stored) as stream:
        rows = open_parquet(stream).read()
        columns = with_times_of(schema, rows.schema)
        rows = rows.cast(pa.schema([one.with_type(without_views(one.type)) for one in columns]))
        kept = np.ones(rows.num_rows, dtype=bool)
        kept[list(dropped)] = False
        if not kept.any():
            return Rewrite([], [_remove(file, now_ms)])
        joined = _Joined(files, rows.schema, dict(file.values))
        for batch in rows.filter(pa.array(kept)).to_batches():
            joined.write(batch)
        return Rewrite([joined.close(now_ms)], [_remove(file, now_ms)])


def _remove(file: TableFile, now_ms: int) -> RemoveAction:
    return RemoveAction(file.stored, False, now_ms, file.size_bytes, dict(file.values))  # noqa: FBT003 -- no data changes


class _Joined:
    """A file that is written from several files."""

    def __init__(self, files: pa_fs.FileSystem, schema: pa.Schema, values: Mapping[str, str | None]) -> None:
        self.schema = schema
        self._files = files
        self._values = dict(values)
        self._path = new_file(values)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._statistics = FileStatistics()
        make_folder(files, self._path)
        self._stream = files.open_output_stream(self._path)
        # Dictionaries for all columns: values that repeat are written and read faster, others fall back after 1 MB.
        self._writer = pq.ParquetWriter(self._stream, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self, now_ms: int) -> AddAction:
        self._flush()
        self._writer.close()
        size = close_stream(self._stream, self._files, self._path)
        stats = self._statistics.json(self.schema.names)
        return AddAction(self._path, size, self._values, now_ms, False, stats)  # noqa: FBT003 -- no data changes

    def _flush(self) -> None:
        if self._held:
            rows = pa.Table.from_batches(self._held)
            self._statistics.add(rows)
            self._writer.write_table(rows)
        self._held, self._held_bytes = [], 0


def table_files(handle: DeltaTable) -> Iterator[TableFile]:
    """Yield the data files of a table.

    Raises:
        TableError: a partition column has an unsupported type.
    """
    columns = handle.metadata().partition_columns
    for row in pa.table(handle.get_add_actions(flatten=True)).to_pylist():
        values = tuple((name, _text(row[f"{_PARTITION}{name}"])) for name in columns)
        yield TableFile(row["path"], row["size_bytes"], values, row.get("num_records") or 0)


def _text(value: object) -> str | None:
    """Return a partition's value as the log writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if type(value) is date:
        return value.isoformat()
    raise TableError(f"a partition column holds {type(value).__name__}, which this version does not know")
