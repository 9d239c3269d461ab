"""Data files as entries of an Iceberg manifest, with bounds of the columns that identify a record."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_sink.errors import SchemaError
from spark_sink.lake.iceberg.partition_terms import Values
from spark_sink.lake.table_contract import DataFile

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

_LOCATION, _IDS, _PARTITION = "location", "fieldIds", "partition"
_UNPARTITIONED = 0, ()  # of files that an earlier version described
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A landed file clips the bounds of a time to the calendar, and a clipped bound would hide rows from a filter.
_CLIPPED = {datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)}


class Partition(NamedTuple):
    """The partition of a file: the id of the table's partitioning, and the value of each of its fields."""

    spec: int
    values: Values


def with_place(file: DataFile, folder: str, ids: Mapping[str, Sequence[int]], partition: Partition) -> DataFile:
    """Add the file's full address, its field ids and its partition to its statistics, for the commit."""
    place = {_LOCATION: f"{folder}/{file.path}", _IDS: dict(ids), _PARTITION: partition}
    return replace(file, stats=json.dumps({**json.loads(file.stats), **place}))


def location(file: DataFile) -> str:
    """Return the full address of a landed file."""
    return str(json.loads(file.stats)[_LOCATION])


def partition_of(file: DataFile) -> Partition:
    """Return the partition of a landed file."""
    spec, values = json.loads(file.stats).get(_PARTITION, _UNPARTITIONED)
    return Partition(spec, tuple(values))


def entry(name: str, file: DataFile, metadata: "TableMetadata") -> "Entry":
    """Return the entry of a landed file.

    Raises:
        SchemaError: columns have other field ids by now, so readers would not find their values; the table has another
            partitioning; or the file lacks columns, because its path has their values.
    """
    from pyiceberg.manifest import DataFile as Entry
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    if file.partition_values:
        raise SchemaError(
            f"{name}: {file.path} lacks the columns {sorted(file.partition_values)}, which are in its path; "
            "readers of an Iceberg table would not find them; nothing was committed"
        )
    spec, values = partition_of(file)
    if spec != metadata.default_spec_id:
        raise SchemaError(
            f"{name}: the partitioning changed after the files of this batch were written; nothing was committed. "
            "Start the query again: it writes the batch with the current partitioning"
        )
    stats, schema = json.loads(file.stats), metadata.schema()
    _refuse_other_ids(name, stats[_IDS], schema)
    rows = stats["numRecords"]
    nulls = {schema.find_field(column).field_id: count for column, count in stats["nullCount"].items()}
    return Entry.from_args(
        content=DataFileContent.DATA,
        file_path=stats[_LOCATION],
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        record_count=rows,
        file_size_in_bytes=file.size_bytes,
        value_counts=dict.fromkeys(nulls, rows),
        null_value_counts=nulls,
        lower_bounds=_bounds(stats["minValues"], schema),
        upper_bounds=_bounds(stats["maxValues"], schema),
        sort_order_id=None,
        spec_id=spec,
        equality_ids=None,
        key_metadata=None,
    )


def _refuse_other_ids(name: str, ids: Mapping[str, Sequence[int]], schema: "Schema") -> None:
    now = {one.name: one.field_id for one in schema.fields}
    for column, (number, *nested) in ids.items():
        if now.get(column) != number or any(schema.find_column_name(one) is None for one in nested):
            raise SchemaError(
                f"{name}: column {column!r} or a field in it was dropped or renamed after the files of this batch were "
                "written; nothing was committed. Start the query again: it writes the batch with the current columns"
            )


def _bounds(values: Mapping[str, Any], schema: "Schema") -> dict[int, bytes]:
    from pyiceberg.conversions import to_bytes

    found: dict[int, bytes] = {}
    for column, value in values.items():
        field = schema.find_field(column)
        bound = _microseconds(value) if column == "timestamp" else value
        if bound is not None:
            found[field.field_id] = to_bytes(field.field_type, bound)  # type: ignore[arg-type]  # a plain column
    return found


def _microseconds(text: str) -> int | None:
    at = datetime.fromisoformat(text)
    return None if at in _CLIPPED else (at - _EPOCH) // timedelta(microseconds=1)
