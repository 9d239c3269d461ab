"""Small files of a table rewritten as larger ones: which, and how. The commit is `compaction`'s."""

import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from spark_sink.errors import TableError
from spark_sink.lake.parquet_landing import FileStatistics, storage_errors

_GROUP_BYTES = 32 << 20
# Features under which the rows of a file are all rows of the file, and a file is what its path and statistics say.
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
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.=/-]+")  # a log writes other characters in its own way
_PARTITION = "partition."

Values = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class _File:
    """A data file in the table."""

    path: str
    size_bytes: int
    values: Values


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files that take the place of others."""

    adds: Sequence[AddAction]
    removes: Sequence[RemoveAction]


def plan_rewrites(handle: DeltaTable, target_bytes: int) -> list[list[_File]]:
    """Choose files to be joined, at least two of one partition each time.

    Args:
        handle: of the table.
        target_bytes: files are joined up to this size; larger ones stay.

    Raises:
        TableError: the table has a feature that is not known here.
    """
    protocol = handle.protocol()
    strange = {*(protocol.reader_features or ()), *(protocol.writer_features or ())} - _KNOWN_FEATURES
    if strange:
        raise TableError(f"the table has the feature {min(strange)}, which compaction does not know")
    found: dict[Values, list[list[_File]]] = {}
    for file in _files(handle):
        if file.size_bytes >= target_bytes:
            continue
        bins = found.setdefault(file.values, [[]])
        if sum(one.size_bytes for one in bins[-1]) + file.size_bytes > target_bytes:
            bins.append([])
        bins[-1].append(file)
    return [one for bins in found.values() for one in bins if len(one) > 1]


def write_rewrite(files: pa_fs.FileSystem, small: Sequence[_File]) -> Rewrite:
    """Write the rows of small files into as few as their columns allow.

    Args:
        files: file system rooted at the table.
        small: of one partition.

    Raises:
        TableError: the storage refused.
    """
    now_ms = int(time.time() * 1000)
    values = dict(small[0].values)
    removes = [RemoveAction(one.path, False, now_ms, one.size_bytes, values) for one in small]  # noqa: FBT003 -- no data changes
    adds: list[AddAction] = []
    joined: _Joined | None = None
    for one in small:
        with storage_errors(one.path), files.open_input_file(one.path) as stream:
            source = pq.ParquetFile(stream)
            if joined is None or not joined.schema.equals(source.schema_arrow):
                adds += [joined.close(values, now_ms)] if joined is not None else []
                joined = _Joined(files, source.schema_arrow)
            for batch in source.iter_batches():
                joined.write(batch)
    if joined is not None:
        adds.append(joined.close(values, now_ms))
    return Rewrite(adds, removes)


class _Joined:
    """One file that is written from several."""

    def __init__(self, files: pa_fs.FileSystem, schema: pa.Schema) -> None:
        self.schema = schema
        self._files = files
        self._path = f"part-{uuid.uuid4().hex}.parquet"
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._statistics = FileStatistics()
        self._stream = files.open_output_stream(self._path)
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression="zstd",
            use_dictionary=[name for name in ("topic", "partition") if name in schema.names],
        )

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._statistics.add(pa.Table.from_batches([batch]))
        if self._held_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self, values: Mapping[str, str | None], now_ms: int) -> AddAction:
        self._flush()
        self._writer.close()
        self._stream.close()
        size = self._files.get_file_info(self._path).size
        stats = self._statistics.json(self.schema.names)
        return AddAction(self._path, size, values, now_ms, False, stats)  # noqa: FBT003 -- no data changes

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held))
        self._held, self._held_bytes = [], 0


def _files(handle: DeltaTable) -> Iterator[_File]:
    columns = handle.metadata().partition_columns
    for row in pa.table(handle.get_add_actions(flatten=True)).to_pylist():
        values = tuple((name, _text(row[f"{_PARTITION}{name}"])) for name in columns)
        if _PLAIN_PATH.fullmatch(row["path"]):
            yield _File(row["path"], row["size_bytes"], values)


def _text(value: object) -> str | None:
    """A partition's value as the log writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if type(value) is date:
        return value.isoformat()
    raise TableError(f"a partition column holds {type(value).__name__}, which compaction does not know")
