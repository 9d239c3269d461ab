"""Direct landing: the tasks that read Kafka write the data files, and only their descriptions pass through Spark.

Where no transformation stands between source and sink, rows need not become Spark's rows and Arrow again. The source
is given the sink's options, lands what it fetches, and hands on one row for each task, with the column `_landed`; the
sink knows that column and goes straight to the commit. Compare and swap is the same.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_sink.errors import OptionError, SchemaError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.file_descriptions import describe_file, parse_file
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.table_contract import DataFile
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

COLUMN = "_landed"
_SCHEMA = pa.schema([pa.field(COLUMN, pa.string())])

Files = dict[str, list[DataFile]]
Schemas = dict[str, pa.Schema]


def is_direct(names: list[str]) -> bool:
    """Whether a query's columns are descriptions of files."""
    return names == [COLUMN]


def table_schema(options: Mapping[str, str]) -> pa.Schema:
    """The columns of the rows that are landed, from the options that both sides are given.

    `columns` is the schema of the query without landing, as Spark writes it in JSON; without it, the raw format.

    Raises:
        OptionError: `columns` is no schema.
    """
    given = {name.lower(): value for name, value in options.items()}
    text = given.get("columns")
    if not text:
        return arrow_schema(headers=given.get("includeheaders", "false").lower() == "true")
    try:
        schema = StructType.fromJson(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise OptionError(f"option 'columns': {text[:200]!r} is no schema of Spark's in JSON") from error
    return normal_schema(to_arrow_schema(schema, timezone="UTC"))


def run_of_task() -> str:
    """Spark's id of the run of the query that this task belongs to; empty outside a task."""
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
        options: of the sink.
        schema: of the rows.
        run: names the run of the query.
        ranges: what the task reads; the rows are all records of these ranges.

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
    """The one row that a task hands on."""
    return pa.RecordBatch.from_arrays([pa.array([text], pa.string())], schema=_SCHEMA)


def describe(
    files: Files,
    schema: pa.Schema,
    ranges: Iterable[Range] = (),
    columns: Schemas | None = None,
    wanted: Schemas | None = None,
) -> str:
    """Data files, and the ranges that were read for them, as text.

    Args:
        files: by the address of their table.
        schema: of the rows.
        ranges: what was read.
        columns: of the rows of each table, where these were looked up for the batch.
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
    """The columns of each table's rows and those wanted, from the text; none where the query's columns are fixed."""
    value = json.loads(text)
    columns, wanted = (
        {table: pa.ipc.read_schema(pa.py_buffer(b64decode(one))) for table, one in value.get(name, {}).items()}
        for name in ("by_table", "wanted")
    )
    return columns, wanted


def parse(text: str, schema: pa.Schema) -> Files:
    """Data files from their text.

    Raises:
        SchemaError: they were written with other columns than the sink expects.
    """
    value = json.loads(text)
    if value["columns"] != _columns(schema) and "by_table" not in value:
        raise SchemaError(
            f"files were landed with the columns {value['columns']}, the sink expects {_columns(schema)}; "
            "give source and sink the same options"
        )
    return {table: [parse_file(one) for one in files] for table, files in value["tables"].items()}


def parse_ranges(text: str) -> list[Range]:
    """The ranges that a task has read, from its text."""
    return [Range(*one) for one in json.loads(text)["ranges"]]


def refuse_unread(offset: Offset, read: Sequence[Range]) -> None:
    """Refuse a batch whose tasks have not read the whole of it: nothing filters here, so nothing may be missing.

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
