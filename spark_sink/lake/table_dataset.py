"""The rows of a Delta table as an Arrow dataset that reads the files of every engine.

A dataset leaves out the files whose bounds exclude a filter. delta-rs' own datasets take a missing bound as one that no
value meets, so a filter on the column lost all rows of the file. Statistics may lack any bound: an engine writes those
of some columns only, none of a long text, and none of a column without a value.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_sink.errors import TableError, plain
from spark_sink.lake.foreign_parquet import TIME_UNIT

if TYPE_CHECKING:
    import pyarrow.dataset as pa_dataset

_MILLISECOND = pa.scalar(timedelta(milliseconds=1), pa.duration("us"))


def table_dataset(handle: DeltaTable) -> "pa_dataset.Dataset":
    """Return the rows of the handle's version.

    Raises:
        DeltaError: the table has a feature that delta-rs does not read.
        TableError: delta-rs names a file in two ways.
    """
    from pyarrow.dataset import ParquetReadOptions  # noqa: PLC0415 -- slow to import, and most tasks read no table

    found = handle.to_pyarrow_dataset(parquet_read_options=ParquetReadOptions(coerce_int96_timestamp_unit=TIME_UNIT))
    files = pa.table(handle.get_add_actions(flatten=False))
    lacking = _lacking(files)
    return _with_guarantees(found, files.take(lacking)) if len(lacking) else found


def all_rows(handle: DeltaTable, columns: Sequence[str], *, batch_size: int = 131_072) -> Iterator[pa.RecordBatch]:
    """Read the rows of all files; little is read ahead, because memory and the first row matter more than speed.

    Args:
        handle: handle of the table.
        columns: the columns to read.
        batch_size: rows of a batch at most.

    Raises:
        DeltaError, TableError: as `table_dataset`.
        OSError: a file cannot be read; the message has its path.
    """
    found = table_dataset(handle)
    try:
        yield from found.to_batches(
            columns=list(columns), batch_size=batch_size, batch_readahead=2, fragment_readahead=1
        )
    except (OSError, pa.ArrowException) as error:
        damaged = _unreadable_file(found, columns)
        named = damaged is None or damaged in str(error)
        raise OSError(plain(error) if named else f"{damaged}: {plain(error)}") from error


def _unreadable_file(found: "pa_dataset.Dataset", columns: Sequence[str]) -> str | None:
    """Return the path of the first file that cannot be read by itself: errors of a dataset often do not name it."""
    for one in found.get_fragments():
        try:
            for _ in one.to_batches(found.schema, columns=list(columns), batch_readahead=2):
                pass
        except (OSError, pa.ArrowException):
            return str(one.path)
    return None


def rows_where(
    handle: DeltaTable,
    where: Callable[[pc.Expression], pc.Expression],
    columns: Sequence[str],
    *,
    batch_size: int = 131_072,
) -> Iterator[pa.RecordBatch]:
    """Read the rows that meet a condition, of one file after another; files whose bounds exclude it are left out.

    delta-rs writes views of texts into the files of a DELETE, UPDATE or MERGE. Arrow compares no text with a view, and
    by the text of a cast it leaves out no files. So files are chosen by the topic, and rows by a cast of it.

    Args:
        handle: handle of the table.
        where: returns the condition, given the topic.
        columns: the columns to read.
        batch_size: rows of a batch at most.

    Raises:
        DeltaError, TableError: as `table_dataset`.
        ArrowException: a file cannot be read.
    """
    found = table_dataset(handle)
    for one in found.get_fragments(where(pc.field("topic"))):
        yield from one.to_batches(
            found.schema,
            columns=list(columns),
            filter=where(pc.field("topic").cast(pa.string())),
            batch_size=batch_size,
            batch_readahead=2,
        )


def _lacking(files: pa.Table) -> Sequence[int]:
    """Return the positions of files that lack a bound, or the number of nulls, of a column that others have."""
    lacks = np.zeros(files.num_rows, dtype=bool)
    for name in _bounded(files):
        for kind in ("min", "max", "null_count"):
            lacks |= _statistic(files, kind, name).is_null().to_numpy()
    return np.flatnonzero(lacks).tolist()


def _with_guarantees(found: "pa_dataset.FileSystemDataset", files: pa.Table) -> "pa_dataset.Dataset":
    """Replace what the dataset takes for granted of these files."""
    from pyarrow.dataset import FileSystemDataset  # noqa: PLC0415 -- slow to import, and most tasks read no table

    ours = {unquote(path): at for at, path in enumerate(files.column("path").to_pylist())}
    guarantees = list(_guarantees(files, found.schema))
    fragments = []
    for one in found.get_fragments():
        at = ours.pop(one.path, None)
        fragments.append(
            one
            if at is None
            else found.format.make_fragment(one.path, filesystem=found.filesystem, partition_expression=guarantees[at])
        )
    if ours:
        raise TableError(f"the log has a path in an unknown form, {min(ours)!r}, and its rows would be left out")
    return FileSystemDataset(fragments, found.schema, found.format, found.filesystem)


def _guarantees(files: pa.Table, schema: pa.Schema) -> Iterator[pc.Expression]:
    """Yield a condition that all rows of a file meet, by its partition values and those bounds that are there."""
    values = {name: _statistic(files, "partition", name) for name in _names(files, "partition")}
    lows, highs, nulls = (
        {name: _statistic(files, kind, name) for name in _bounded(files) if _has_order(schema, name)}
        for kind in ("min", "max", "null_count")
    )
    for at in range(files.num_rows):
        known = [_equals(name, column[at], schema.field(name).type) for name, column in values.items()]
        for name in lows:
            bounds = [pc.field(name) >= low] if (low := lows[name][at]).is_valid else []
            bounds += [pc.field(name) <= _upper(high)] if (high := highs[name][at]).is_valid else []
            may_be_null = [] if nulls[name][at].as_py() == 0 else [pc.field(name).is_null()]
            known += [reduce(or_, [one, *may_be_null]) for one in bounds]
        yield reduce(and_, known, pc.scalar(True))  # noqa: FBT003 -- a literal of the expression


def _equals(name: str, value: pa.Scalar, kind: pa.DataType) -> pc.Expression:
    return pc.field(name) == value.cast(kind) if value.is_valid else pc.field(name).is_null()


def _upper(bound: pa.Scalar) -> pa.Scalar:
    """Return a bound above all values: Spark cuts the times in statistics to milliseconds."""
    return pc.add(bound, _MILLISECOND) if pa.types.is_timestamp(bound.type) else bound


def _has_order(schema: pa.Schema, name: str) -> bool:
    """Return whether every value of a column is within its bounds, unlike a NaN."""
    kind = schema.field(name).type if name in schema.names else pa.null()
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or _is_date_or_time(kind))


def _is_date_or_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _bounded(files: pa.Table) -> list[str]:
    return sorted({*_names(files, "min"), *_names(files, "max")})


def _names(files: pa.Table, kind: str) -> list[str]:
    return [one.name for one in files.schema.field(kind).type] if kind in files.column_names else []


def _statistic(files: pa.Table, kind: str, name: str) -> pa.ChunkedArray:
    if name not in _names(files, kind):
        return pa.chunked_array([pa.nulls(files.num_rows)])
    return pc.struct_field(files.column(kind), name)
