"""Direct landing: the tasks that read Kafka write the data files, and only descriptions of the files go through Spark.

Without a transformation between source and sink, records need not be converted to Spark's rows and back to Arrow. The
source gets the sink's options, writes its records to files, and returns one row for each task, with the column
`_landed`. The sink recognises that column and only commits. Compare and swap is the same.

Spark's `numInputRows` counts the rows of a source, and its Python API takes no other number. So a task adds a row
without a description for each further record. The query drops these rows (`HAS_FILES`), or the sink ignores them.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import StructType

from spark_sink.errors import OptionError, SchemaError, TableError
from spark_sink.fetch.raw_columns import arrow_schema, schema_without
from spark_sink.lake.file_descriptions import describe_file, parse_file
from spark_sink.lake.table_contract import DataFile
from spark_sink.options.source_options import left_out
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.query_columns import query_columns
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

COLUMN = "_landed"
HAS_FILES = f"{COLUMN} IS NOT NULL"  # a condition in Spark's SQL
_EMPTY_ROWS = 100_000  # in one batch
_SCHEMA = pa.schema([pa.field(COLUMN, pa.string())])

Files = dict[str, list[DataFile]]
Schemas = dict[str, pa.Schema]


def is_direct(names: list[str]) -> bool:
    """Return whether a query's columns are descriptions of files."""
    return names == [COLUMN]


def table_schema(options: Mapping[str, str]) -> pa.Schema:
    """Return the columns of the written rows, from the common options of source and sink.

    `columns` is the schema of the query without direct landing, in Spark's JSON; the default is the raw format.

    Raises:
        OptionError: `columns` is not a schema.
    """
    given = {name.lower(): value for name, value in options.items()}
    text = given.get("columns")
    if not text:
        asked = (given.get(name, "false").lower() == "true" for name in ("includeheaders", "includetimestamptype"))
        headers, timestamp_type = asked
        return schema_without(arrow_schema(headers=headers, timestamp_type=timestamp_type), left_out(given))
    try:
        schema = StructType.fromJson(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OptionError(f"option 'columns': {text[:200]!r} is not a schema of Spark's in JSON") from error
    return query_columns(schema)


def run_of_task() -> str:
    """Return Spark's id of this task's query run; empty outside a task."""
    context = TaskContext.get()
    return (context.getLocalProperty("spark.jobGroup.id") or "") if context else ""


def land(
    batches: Iterable[pa.RecordBatch],
    options: Mapping[str, str],
    schema: pa.Schema,
    run: str,
    ranges: Iterable[Range] = (),
) -> pa.RecordBatch:
    """Write the rows of one task.

    Args:
        batches: the rows.
        options: options of the sink.
        schema: schema of the rows.
        run: id of the query's run.
        ranges: the ranges of the task; the rows are all records of these ranges.

    Returns:
        One row that describes the files.

    Raises:
        TableError: the storage refused.
    """
    sorting = Sorting(SinkOptions.parse(options), schema, run)
    for batch in batches:
        sorting.write(batch)
    return description(describe(sorting.close(), schema, ranges))


def description(text: str) -> pa.RecordBatch:
    """Return the row of a task that describes its files."""
    return pa.RecordBatch.from_arrays([pa.array([text], pa.string())], schema=_SCHEMA)


class CountedBatches:
    """Batches, and the number of their rows.

    Attributes:
        rows: number of rows in the batches that were taken.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def empty_rows(records: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task adds to its description, so that it has a row for each of its records."""
    left = records - 1
    made = pa.RecordBatch.from_arrays([pa.nulls(min(max(left, 0), _EMPTY_ROWS), pa.string())], schema=_SCHEMA)
    while left > 0:
        yield made.slice(0, left)
        left -= _EMPTY_ROWS


def describe(
    files: Files,
    schema: pa.Schema,
    ranges: Iterable[Range] = (),
    columns: Schemas | None = None,
    wanted: Schemas | None = None,
) -> str:
    """Describe data files, and the ranges read for them, as text.

    Args:
        files: files by the address of their table.
        schema: schema of the rows.
        ranges: the ranges read.
        columns: columns of the rows of each table, if they were read for the batch.
        wanted: columns for fields that a table lacks.
    """
    tables = {table: [describe_file(file) for file in found] for table, found in files.items()}
    read = [[*one.key, one.begin, one.end] for one in ranges]
    value = {"columns": _columns(schema), "tables": tables, "ranges": read}
    for name, schemas in (("by_table", columns), ("wanted", wanted)):
        if schemas:
            value[name] = {table: b64encode(one.serialize()).decode() for table, one in schemas.items()}
    return json.dumps(value, separators=(",", ":"))


def parse_schemas(text: str) -> tuple[Schemas, Schemas]:
    """Read each table's columns and wanted columns from the text; empty if the query's columns are fixed."""
    value = json.loads(text)
    columns, wanted = (
        {table: pa.ipc.read_schema(pa.py_buffer(b64decode(one))) for table, one in value.get(name, {}).items()}
        for name in ("by_table", "wanted")
    )
    return columns, wanted


def parse(text: str, schema: pa.Schema) -> Files:
    """Read data files from their text.

    Raises:
        SchemaError: their columns differ from those that the sink expects.
    """
    value = json.loads(text)
    if value["columns"] != _columns(schema) and "by_table" not in value:
        raise SchemaError(
            f"files were landed with the columns {value['columns']}, the sink expects {_columns(schema)}; "
            "give source and sink the same options"
        )
    return {table: [parse_file(one) for one in files] for table, files in value["tables"].items()}


def parse_ranges(text: str) -> list[Range]:
    """Read the ranges of a task from its text."""
    return [Range(*one) for one in json.loads(text)["ranges"]]


def refuse_unread(offset: Offset, read: Sequence[Range]) -> None:
    """Refuse a batch that its tasks have not read completely: there is no filter here, so no record may be missing.

    Raises:
        TableError: the ranges of the tasks do not cover a range of the batch.
    """
    by_partition: dict[TopicPartition, list[Range]] = {}
    for one in sorted(read):
        by_partition.setdefault(one.key, []).append(one)
    for wanted in offset:
        at = wanted.begin
        for one in by_partition.get(wanted.key, ()):
            at = max(at, one.end) if one.begin <= at else at
        if at < wanted.end:
            raise TableError(
                f"{wanted.topic}/{wanted.partition}: the tasks landed offsets up to {at} of the batch's range "
                f"[{wanted.begin}, {wanted.end}); nothing was committed. Let the rows of a source with the option "
                "'landing' go to the sink as they are, without a filter"
            )


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name} {field.type}" for field in schema]
