"""Direct landing: the tasks that read Kafka write the data files, and only their descriptions pass through Spark.

Where no transformation stands between source and sink, rows need not become Spark's rows and Arrow again. The source
is given the sink's options, lands what it fetches, and hands on one row for each task, with the column `_landed`; the
sink knows that column and goes straight to the commit. Compare and swap is the same.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_sink.errors import OptionError, SchemaError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions

COLUMN = "_landed"
_SCHEMA = pa.schema([pa.field(COLUMN, pa.string())])

Files = dict[str, list[DataFile]]


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


def land(batches: Iterable[pa.RecordBatch], options: Mapping[str, str], schema: pa.Schema, run: str) -> pa.RecordBatch:
    """Write the rows of one task.

    Args:
        batches: the rows.
        options: of the sink.
        schema: of the rows.
        run: names the run of the query.

    Returns:
        One row that describes the files.

    Raises:
        TableError: the storage refused.
    """
    sorting = Sorting(SinkOptions.parse(options), schema, run)
    for batch in batches:
        sorting.write(batch)
    text = describe(sorting.close(), schema)
    return pa.RecordBatch.from_arrays([pa.array([text], pa.string())], schema=_SCHEMA)


def describe(files: Files, schema: pa.Schema) -> str:
    """Data files as text."""
    tables = {table: [_value(file) for file in found] for table, found in files.items()}
    return json.dumps({"columns": _columns(schema), "tables": tables}, separators=(",", ":"))


def parse(text: str, schema: pa.Schema) -> Files:
    """Data files from their text.

    Raises:
        SchemaError: they were written with other columns than the sink expects.
    """
    value = json.loads(text)
    if value["columns"] != _columns(schema):
        raise SchemaError(
            f"files were landed with the columns {value['columns']}, the sink expects {_columns(schema)}; "
            "give source and sink the same options"
        )
    return {table: [_file(one) for one in files] for table, files in value["tables"].items()}


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name} {field.type}" for field in schema]


def _value(file: DataFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "size": file.size_bytes,
        "spans": [[*key, *span] for key, span in file.spans.items()],
        "values": dict(file.partition_values),
        "stats": file.stats,
        "written": file.written_ms,
    }


def _file(value: Mapping[str, Any]) -> DataFile:
    return DataFile(
        path=value["path"],
        size_bytes=value["size"],
        spans={TopicPartition(topic, number): Span(*span) for topic, number, *span in value["spans"]},
        partition_values=value["values"],
        stats=value["stats"],
        written_ms=value["written"],
    )
