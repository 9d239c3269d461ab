"""A function for `foreachBatch` with which Spark's own Parquet writer writes the files, and the sink commits them.

A query with SQL between source and sink has its rows in Spark's format. The sink's tasks are in Python, so each row is
converted to Arrow, sent and written there; that takes half of the time of such a query. Here the rows stay where they
are: the driver reads back which offsets are in the files, and commits as for any batch.

A record that could not be decoded travels in the column `topic`, as JSON, to files of its own. So the files of the
table have its columns only, and one pass over the rows is enough.
"""

import json
import logging
import time
import uuid
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.fs as pa_fs
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 -- as Spark's documentation
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from assignors.hashing import hash64
from spark_sink.errors import OptionError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN, REASON, good_schema, split
from spark_sink.formats.bad_values_quarantined import SCHEMA as QUARANTINE_SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.foreign_parquet import open_parquet
from spark_sink.lake.parquet_landing import Landing, storage_errors
from spark_sink.lake.table_addresses import PLACEHOLDER
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_formats import open_landing
from spark_sink.lake.table_storage import address_of, folders_in
from spark_sink.sink.delta_sink import BatchWriter, DeltaExactlyOnceSink, Landed, SinkWriter, stream_writer
from spark_sink.sink.iceberg_sink import IcebergExactlyOnceSink
from spark_sink.sink.sink_options import BATCH_RUN, ICEBERG_FORMAT, SinkOptions, option_value
from spark_sink.sink.spark_written_files import adopt, described, last_write, local_root, parquet_files, remove, rows_in

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_log = logging.getLogger(__name__)

_SINKS: Final = {sink.name(): sink for sink in (DeltaExactlyOnceSink, IcebergExactlyOnceSink)}
_IS_BAD: Final = "azimuth_bad"
_CODECS: Final = {"none": "uncompressed", "lz4": "lz4_raw"}  # Arrow's names and Spark's
_SETTINGS: Final = {
    # Without a sort of all rows by the column that marks bad ones: two open files a task.
    "spark.sql.maxConcurrentOutputFileWriters": "2",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
_FIELD_ID: Final = b"PARQUET:field_id"
_NESTED: Final = (ArrayType, MapType, StructType)
_UNKNOWN_TO_PARQUET: Final = (CalendarIntervalType, DayTimeIntervalType, VariantType, YearMonthIntervalType)
_LEFT_S: Final = 86_400.0  # a batch that writes no file for a day does not run any more
_BAD_ROWS: Final = 10_000  # in memory at once


class SparkLanding:
    """Writes the batches of a query, exactly once, with Spark's own Parquet writer.

    ```python
    options = {"path": "/lake/delays", "kafka.group.id": "delays", "checkpointLocation": "/lake/delays-checkpoint"}
    writer = rows.writeStream.foreachBatch(SparkLanding("delta-exactly-once", options))
    writer.option("checkpointLocation", options["checkpointLocation"]).start()
    ```

    Args:
        format: `delta-exactly-once` or `iceberg-exactly-once`.
        options: options of the sink, without `batchId`.

    Contract: the table has what `.write.format(format)` with `batchId` would write, and the guarantees are the same.
    A batch is committed only if its files have as many rows as Spark has written.

    Where Spark cannot write the files, the rows take that way, and the log says why: a table that is not in a local
    folder, several tables, partitioned tables, Spark Connect, columns of the types variant and interval, and for
    Iceberg columns with fields.

    Raises:
        OptionError: the format is unknown, or an option is invalid.
    """

    def __init__(self, format: str, options: Mapping[str, str]) -> None:  # noqa: A002 -- Spark's word
        if format not in _SINKS:
            raise OptionError(f"format {format!r}: need one of {', '.join(sorted(_SINKS))}")
        if option_value(options, "batchId") is not None:
            raise OptionError("option 'batchId' is the second argument of this function; leave it out")
        self._format = format
        self._options = {**options, "tableFormat": ICEBERG_FORMAT} if "iceberg" in format else dict(options)
        self._parsed = SinkOptions.parse(self._options)
        self._said: str | None = None
        self._folders = f"spark-{hash64(self._parsed.checkpoint):016x}-"
        self._cleared = False

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        """Write one batch.

        Args:
            rows: of the batch.
            batch: Spark's number of the batch.

        Raises:
            TableError: the table refuses the batch, or this call of `foreachBatch` has already written to it.
        """
        reason = self._why_not(rows)
        if reason is None:
            writer = stream_writer(self._format, self._options, rows.schema, overwrite=False)
            reason = self._write(rows, batch, writer)
        if reason is not None:
            self._say(reason)
            rows.sparkSession.dataSource.register(_SINKS[self._format])
            options = dict(self._options)
            if not isinstance(rows, ClassicDataFrame):
                options[BATCH_RUN] = _run_of_process()  # the tasks of Spark Connect do not know the run
            rows.write.format(self._format).options(**options, batchId=batch).mode("append").save()

    def _why_not(self, rows: "DataFrame") -> str | None:
        """Return why Spark cannot write the files, as far as options and columns show it."""
        if not isinstance(rows, ClassicDataFrame):
            return "the session is Spark Connect's"
        if PLACEHOLDER in self._parsed.routes.default or len(self._parsed.routes.addresses()) > 1:
            return "the rows go to several tables"
        if any(name.lower() == _IS_BAD for name in rows.columns):
            return f"a column has the name {_IS_BAD}, which is needed to tell bad rows apart"
        for field in rows.schema:
            if _has_type(field.dataType, _UNKNOWN_TO_PARQUET):
                return f"column {field.name!r} is {field.dataType.simpleString()}"
            if self._parsed.iceberg and field.name != COLUMN and isinstance(field.dataType, _NESTED):
                return f"column {field.name!r} of an Iceberg table has fields"
        return None

    def _write(self, rows: "DataFrame", batch: int, writer: SinkWriter) -> str | None:
        """Write and commit one batch; or return why Spark cannot write the files."""
        address = self._parsed.routes.default
        landing = open_landing(address, self._parsed.storage, good_schema(writer.schema), self._parsed.table)
        if landing.is_partitioned:
            return "the table is partitioned"
        root = local_root(landing.files)
        if root is None:
            return "the table is not in a local folder"
        session = rows.sparkSession
        run = session.sparkContext.getLocalProperty("spark.jobGroup.id") or ""
        self._clear(landing.files)
        folder = f"{self._folders}{uuid.uuid4().hex}"
        try:
            with _settings(session):
                written = self._write_files(_columns(rows, landing.schema), f"file://{root}/{folder}")
            good = described(landing, (folder, f"{folder}/{_IS_BAD}=false"))
            bad = parquet_files(landing.files, f"{folder}/{_IS_BAD}=true")
            present = sum(file.rows for file in good) + sum(rows_in(landing.files, path) for path in bad)
            if present != written:
                raise TableError(_other_rows(address, root, batch, written, present))
            found = {address: adopt(landing, good)}
            if landed := self._land_bad(landing.files, bad, quarantine_of(address), run):
                found[quarantine_of(address)] = landed
        finally:
            remove(landing.files, folder)
        BatchWriter(writer, batch).commit([Landed(found, run=run)])
        return None

    def _clear(self, files: pa_fs.FileSystem) -> None:
        """Remove what a run of the query has left that was killed while Spark was writing.

        Not what was written lately: a stopped driver may go on beside its successor, and the checkpoints of two hosts
        may have the same name.
        """
        if not self._cleared:
            for folder in folders_in(files):
                if folder.startswith(self._folders) and time.time() - last_write(files, folder) > _LEFT_S:
                    remove(files, folder)
            self._cleared = True

    def _write_files(self, rows: "DataFrame", address: str) -> int:
        """Let Spark write the files, and return the number of its rows."""
        counted = Observation()
        rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
        layout = self._parsed.table.layout
        writer = rows.write.mode("append").options(
            **{
                "compression": _CODECS.get(layout.compression, layout.compression),
                "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
                "parquet.block.size": str(layout.group_bytes),
                "parquet.compression.codec.zstd.level": "1",  # as Arrow
            }
        )
        if _IS_BAD in rows.columns:
            writer = writer.partitionBy(_IS_BAD)
        writer.parquet(address)
        return int(counted.get["rows"])

    def _land_bad(self, files: pa_fs.FileSystem, paths: Iterable[str], quarantine: str, run: str) -> list[DataFile]:
        """Write the bad rows, which are in files of Spark's, to files of the quarantine."""
        landing: Landing | None = None
        for path in paths:
            with storage_errors(address_of(files, path)), files.open_input_file(path) as stream:
                for batch in open_parquet(stream).iter_batches(_BAD_ROWS):
                    _, bad = split(_unpacked(pa.Table.from_batches([batch])), run)
                    landing = landing or open_landing(
                        quarantine, self._parsed.storage, QUARANTINE_SCHEMA, self._parsed.quarantine
                    )
                    for one in bad.to_batches():
                        landing.write(one)
        return landing.close() if landing else []

    def _say(self, reason: str) -> None:
        if reason != self._said:
            self._said = reason
            _log.warning("Spark cannot write the files of %s: %s; Python does", self._parsed.routes.default, reason)


@cache
def _run_of_process() -> str:
    """Return an id of this process: Spark Connect calls the function in a process that it starts for one run."""
    return str(uuid.uuid4())


def _other_rows(address: str, root: str, batch: int, written: int, present: int) -> str:
    """Return the sentence of a batch whose files have more or fewer rows than Spark has written."""
    if present > written:
        why = "a task that Spark repeated has left files, which its commit algorithm 2 allows: use algorithm 1"
    else:
        why = (
            f"{root} must be the same folder on the driver and on every executor, and no other program may remove "
            "files from it"
        )
    return (
        f"{address}: Spark wrote {written} rows of batch {batch}, and its files have {present}, so the batch was not "
        f"committed: {why}. Start the query again to repeat the batch"
    )


def _columns(rows: "DataFrame", schema: pa.Schema) -> "DataFrame":
    """Return the rows with the columns of the files, and with the column that marks bad rows if there may be some."""
    topic = _named("topic")
    bad = [_named(COLUMN).isNotNull().alias(_IS_BAD)] if COLUMN in rows.columns else []
    if bad:
        topic = F.when(_named(COLUMN).isNull(), topic).otherwise(F.to_json(F.struct(topic, _named(COLUMN))))
    return rows.select(
        *(
            (topic if one.name == "topic" else _named(one.name)).alias(one.name, metadata=_metadata(one))
            for one in schema
        ),
        *bad,
    )


def _has_type(type_: DataType, wanted: tuple[type[DataType], ...]) -> bool:
    """Return whether a type is one of these, or has one inside."""
    match type_:
        case ArrayType():
            inner = [type_.elementType]
        case MapType():
            inner = [type_.keyType, type_.valueType]
        case StructType():
            inner = [one.dataType for one in type_]
        case _:
            inner = []
    return isinstance(type_, wanted) or any(_has_type(one, wanted) for one in inner)


def _named(name: str) -> "Column":
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def _metadata(field: pa.Field) -> dict[str, int]:
    number = (field.metadata or {}).get(_FIELD_ID)
    return {"parquet.field.id": int(number)} if number else {}


def _unpacked(rows: pa.Table) -> pa.Table:
    """Return bad rows with their topic and the reason, which are in the column `topic`."""
    found = [json.loads(text) for text in rows.column("topic").to_pylist()]
    reasons = pa.array([_reason(one[COLUMN]) for one in found], REASON)
    at = rows.column_names.index("topic")
    topics = pa.array([one["topic"] for one in found], pa.string())
    return rows.set_column(at, "topic", topics).append_column(COLUMN, reasons)


def _reason(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reason from Spark's JSON, which has binary values in Base64.

    Nulls are left out, or with `spark.sql.jsonGenerator.ignoreNullFields=false` they are null.
    """
    headers = value.get("headers")
    return {
        **value,
        **{name: _binary(value.get(name)) for name in ("key", "value")},
        "headers": None if headers is None else [_header(one) for one in headers],
    }


def _header(value: Mapping[str, str | None] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"key": value.get("key"), "value": _binary(value.get("value"))}


def _binary(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


@contextmanager
def _settings(session: "SparkSession") -> Iterator[None]:
    """Change settings of the query's session for one write."""
    before = {name: session.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
