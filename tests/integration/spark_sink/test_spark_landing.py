"""`SparkLanding`: files of Spark's own writer, committed as the sink's own, against real brokers."""

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from spark_sink import SparkLanding, positions
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_contract import DataFile
from spark_sink.sink import spark_landing, spark_written_files

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
MakeTopic = Callable[..., str]
Options = dict[str, str]
Function = Callable[[DataFrame, int], None]

SCHEMA = '{"n": "bigint", "text": "string", "ratio": "double", "tags": ["string"]}'
FLAT = (
    "n % 3 = 0 as third",
    "cast(n as decimal(20, 4)) / 7 as seventh",
    "date_add(date'0999-12-31', cast(n as int)) as day",
    "timestamp_micros(n * 1000003) as at",
    "cast(timestamp_micros(n * 1000003) as timestamp_ntz) as local",
    "cast(text as binary) as bytes",
    "if(n = 5, double('NaN'), ratio) as odd",
    "cast(n as int) as small",
    "float(ratio) as single",
    "text as `a b.c``d`",
)
NESTED = (
    "map(coalesce(text, ''), n) as counts",
    "named_struct('n', n, 'at', timestamp_micros(n)) as pair",
    "cast(n as tinyint) as tiny",
)
# Columns of the source that Spark writes into an Iceberg table, too.
WITHOUT_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "n", "text", "ratio", "_quarantine")
POISON = {
    3: b"{",
    7: b'{"n": "late"}',
    11: b"\xff\xfe",
    12: None,
    13: b'{"n": 1, "text": "\\ud83d\\ude00 \\"quoted\\""',
}


class Pipeline:
    """A topic of a test, and queries of it, each with an own table and checkpoint."""

    def __init__(self, spark: SparkSession, cluster: Cluster, root: Path, topic: str) -> None:
        self.spark, self.root, self.topic = spark, root, topic
        self.servers = cluster.bootstrap_servers
        self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 1})

    def fill(self, numbers: range) -> None:
        """Produce records on two partitions; some cannot be decoded."""
        for number in numbers:
            record = {"n": number, "text": f"é{number}\n", "ratio": number / 3, "tags": [str(number)] * (number % 3)}
            value = POISON.get(number, json.dumps(record).encode())
            headers: list[tuple[str, str | bytes | None]] = [("h", b"\x00\xff"), ("none", None)] if number % 2 else []
            key = b"k\xff" if number % 5 else None
            self._producer.produce(self.topic, value, key, number % 2, headers=headers)
        assert self._producer.flush(30) == 0

    def options(self, format_: str, table: str, query: str = "") -> Options:
        """The sink's options."""
        both = {"kafka.group.id": f"{self.topic}-{table}", "checkpointLocation": str(self.root / f"{table}{query}-c")}
        if "iceberg" in format_:
            return {**both, "path": f"lake.default.{table}", "catalog.warehouse": str(self.root / "warehouse")}
        return {**both, "path": str(self.root / f"{table} é#?:*,{{}}=")}

    def run(self, options: Options, function: Function, *columns: str, **source: str) -> None:
        """Read what is there until the query ends."""
        given = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.group.id": options["kafka.group.id"],
            "subscribe": self.topic,
            "valueFormat": "json",
            "valueSchema": SCHEMA,
            "includeHeaders": "true",
            "startingOffsets": "earliest",
            "kafka.session.timeout.ms": "6000",
            **source,
        }
        rows = self.spark.readStream.format("kafka-group").options(**given).load()
        rows = rows.where("_quarantine is not null or n <> 20").selectExpr(*columns or ("*",))
        writer = rows.writeStream.foreachBatch(function).option("checkpointLocation", options["checkpointLocation"])
        assert writer.trigger(availableNow=True).start().awaitTermination(120)


@pytest.fixture
def pipeline(spark: SparkSession, cluster: Cluster, tmp_path: Path, topic: MakeTopic) -> Pipeline:
    """A topic with two partitions."""
    return Pipeline(spark, cluster, tmp_path, topic("landed", partitions=2))


def sorted_rows(options: Options, *, quarantine: bool = False, format_: str = "delta") -> pa.Table:
    """The rows of a table, or of its quarantine, in the order of their offsets."""
    suffix = "_quarantine" if quarantine else ""
    if "iceberg" in format_:
        catalog, namespace, table = options["path"].split(".")
        opened = open_catalog(catalog, {"catalog.warehouse": options["catalog.warehouse"]})
        rows = opened.load_table((namespace, table + suffix)).scan().to_arrow()
    else:
        rows = DeltaTable(options["path"] + suffix).to_pyarrow_table()
    return rows.sort_by([("partition", "ascending"), ("offset", "ascending")])


def by_python(format_: str, options: Options) -> Function:
    """Write a batch by the tasks of the sink."""

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.format(format_).options(**options, batchId=batch).mode("append").save()

    return write


def plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as values that are equal to themselves, without those that differ by run."""
    dropped = [name for name in ("run_id", "ingested_at") if name in rows.column_names]
    for name in rows.column_names:
        if pa.types.is_floating(rows.schema.field(name).type):
            filled = pc.if_else(pc.is_nan(rows.column(name)), None, rows.column(name))
            rows = rows.set_column(rows.column_names.index(name), name, filled)
    values: list[dict[str, Any]] = rows.drop_columns(dropped).to_pylist()
    return values


@pytest.mark.parametrize("format_", ["delta-exactly-once", "iceberg-exactly-once"])
def test_spark_writes_the_rows_that_python_writes(pipeline: Pipeline, format_: str) -> None:
    """Values of each type, good rows and quarantine; the columns; and statistics that find the same rows."""
    pipeline.fill(range(60))
    delta = format_.startswith("delta")
    columns = ("*", *FLAT, *NESTED) if delta else (*WITHOUT_FIELDS, *FLAT)
    ours, theirs = pipeline.options(format_, "spark"), pipeline.options(format_, "python")
    pipeline.run(ours, SparkLanding(format_, ours), *columns)
    pipeline.run(theirs, by_python(format_, theirs), *columns)
    found, wanted = (sorted_rows(one, format_=format_) for one in (ours, theirs))
    assert found.schema == wanted.schema
    assert len(found) == 60 - len(POISON) - 1
    assert plain(found) == plain(wanted)
    bad, wanted_bad = (sorted_rows(one, quarantine=True, format_=format_) for one in (ours, theirs))
    assert bad.schema == wanted_bad.schema
    assert len(bad) == len(POISON)
    assert plain(bad) == plain(wanted_bad)
    if delta:
        files = [one for one in Path(ours["path"]).iterdir() if one.name != "_delta_log" and one.name[0] != "."]
        assert all(one.name.startswith("part-") for one in files)
        actions = pa.table(DeltaTable(ours["path"]).get_add_actions(flatten=True)).to_pylist()
        assert sum(one["num_records"] for one in actions) == len(found)
        assert {one["min.topic"] for one in actions} == {pipeline.topic}
        assert min(one["min.timestamp"] for one in actions) == pc.min(found.column("timestamp")).as_py()


@pytest.mark.parametrize("format_", ["delta-exactly-once", "iceberg-exactly-once"])
def test_a_new_field_in_a_struct_is_taken_up(pipeline: Pipeline, format_: str) -> None:
    """By Spark's writer and by the tasks of the sink; a query with fewer fields goes on beside it."""
    options = {**pipeline.options(format_, "spark"), "mergeSchema": "true"}
    by_spark, by_tasks = SparkLanding(format_, options), by_python(format_, options)
    steps: list[tuple[Function, str, str]] = [
        (by_spark, "named_struct('n', n, 'small', 1)", "array(named_struct('n', n))"),
        (by_spark, "named_struct('text', text, 'n', n)", "array(named_struct('text', text, 'n', n))"),
        (by_tasks, "named_struct('n', n)", "array(named_struct('n', n))"),
        (by_tasks, "named_struct('more', named_struct('n', n), 'n', n)", "array(named_struct('n', n))"),
    ]
    for number, (write, pair, pairs) in enumerate(steps):
        pipeline.fill(range(20 + 2 * number, 22 + 2 * number))
        columns = ("topic", "partition", "offset", "_quarantine", f"{pair} as pair", f"{pairs} as pairs")
        pipeline.run(options, write, *columns)
    found = sorted(plain(sorted_rows(options, format_=format_)), key=lambda row: int(row["pair"]["n"]))
    for row in found:
        n = row["pair"]["n"]
        text = f"é{n}\n" if n in {22, 23} else None
        more = {"n": n} if n in {26, 27} else None
        assert row["pair"] == {"n": n, "small": 1 if n < 22 else None, "text": text, "more": more}
        assert row["pairs"] == [{"n": n, "text": text}]
    assert [row["pair"]["n"] for row in found] == [21, 22, 23, 24, 25, 26, 27]  # the query leaves out 20


@pytest.mark.parametrize(
    "format_", ["delta-exactly-once", pytest.param("iceberg-exactly-once", marks=pytest.mark.matrix)]
)
def test_a_batch_whose_function_fails_after_the_commit_is_written_once(pipeline: Pipeline, format_: str) -> None:
    """Spark calls the function again with the same batch; a second call in one run is refused."""
    pipeline.fill(range(60))
    options = pipeline.options(format_, "table")
    iceberg = "iceberg" in format_
    files = pipeline.root / "warehouse" / "default" / "table" / "data" if iceberg else Path(options["path"])
    columns = WITHOUT_FIELDS if iceberg else ("*",)
    address = f"iceberg://{options['path']}" if iceberg else options["path"]
    storage = {name: value for name, value in options.items() if name.startswith("catalog.")}
    land = SparkLanding(format_, options)
    calls: list[int] = []

    def write(rows: DataFrame, batch: int) -> None:
        land(rows, batch)
        calls.append(batch)
        if len(calls) == 1:
            for name, age_s in (("killed", 2 * 86_400), ("running", 3600)):  # a driver that was killed, and another one
                folder = files / f"{land._folders}{name}" / "_temporary"
                folder.mkdir(parents=True)
                for one in (folder, folder.parent):
                    os.utime(one, (time.time() - age_s,) * 2)
            with pytest.raises(Exception, match="already written a part of batch 0"):
                land(rows, batch)
            raise RuntimeError("the first call fails after its write")

    with pytest.raises(Exception, match="the first call fails after its write"):
        pipeline.run(options, write, *columns, maxOffsetsPerTrigger="25")
    land = SparkLanding(format_, options)
    pipeline.run(options, write, *columns, maxOffsetsPerTrigger="25")
    assert calls[:2] == [0, 0]
    assert any(one.name.startswith("part-") for one in files.iterdir())
    assert [one.name for one in files.glob("spark-*")] == [f"{land._folders}running"]
    found, bad = (sorted_rows(options, quarantine=one, format_=format_) for one in (False, True))
    assert (len(found), len(bad)) == (60 - len(POISON) - 1, len(POISON))
    assert verify(address, storage_options=storage).duplicates == 0


@pytest.mark.parametrize("lost", ["folder", "file", "bad rows"])
def test_a_batch_whose_files_are_gone_is_not_committed(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The folder is another one on the executors, or a program removes files: the rows would be lost in silence."""
    pipeline.fill(range(60))
    options = pipeline.options("delta-exactly-once", "table")
    root = Path(options["path"])
    describe = spark_written_files.described

    def remove_first(landing: Landing, folders: Sequence[str]) -> list[DataFile]:
        place = root / folders[0] / {"folder": "", "file": "azimuth_bad=false", "bad rows": "azimuth_bad=true"}[lost]
        if lost == "file":
            next(place.glob("*.parquet")).unlink()
        else:
            shutil.rmtree(place)
        return describe(landing, folders)

    monkeypatch.setattr(spark_landing, "described", remove_first)
    with pytest.raises(
        Exception,
        match=r"Spark wrote 59 rows of batch 0, and its files have \d+, so the batch was not committed: .* same folder",
    ):
        pipeline.run(options, SparkLanding("delta-exactly-once", options))
    assert positions(options["path"], options["kafka.group.id"]) == {}
    assert [one.name for one in root.iterdir() if one.suffix == ".parquet"] == []
    monkeypatch.undo()
    pipeline.run(options, SparkLanding("delta-exactly-once", options))
    found, bad = sorted_rows(options), sorted_rows(options, quarantine=True)
    assert (len(found), len(bad)) == (60 - len(POISON) - 1, len(POISON))


def test_a_batch_without_rows_is_committed(pipeline: Pipeline) -> None:
    """A filter leaves none: Spark has nothing to count, and the positions still move."""
    pipeline.fill(range(20, 21))
    options = pipeline.options("delta-exactly-once", "table")
    pipeline.run(options, SparkLanding("delta-exactly-once", options))
    assert positions(options["path"], options["kafka.group.id"]) == {(pipeline.topic, 0): 1, (pipeline.topic, 1): 0}


def test_rows_that_another_writer_was_faster_with_are_left_out(pipeline: Pipeline) -> None:
    """A query with a new checkpoint begins again; its batch reaches from before the table's position to behind it."""
    for query, records in (("", range(40)), ("-again", range(40, 60))):
        pipeline.fill(records)
        options = pipeline.options("delta-exactly-once", "table", query)
        group = options["kafka.group.id"] + query  # knows no position, so it begins again
        pipeline.run(options, SparkLanding("delta-exactly-once", options), **{"kafka.group.id": group})
    found, bad = sorted_rows(options), sorted_rows(options, quarantine=True)
    assert found.column("n").to_pylist() == sorted(found.column("n").to_pylist(), key=lambda n: (n % 2, n))
    assert (len(found), len(bad)) == (60 - len(POISON) - 1, len(POISON))


@pytest.mark.parametrize(
    ("more", "columns", "why"),
    [
        ({"partitionBy": "partition"}, ("*",), "the table is partitioned"),
        ({"routes": '{".*": "{other}"}'}, ("*",), "the rows go to several tables"),
        ({}, ("*", "parse_json(to_json(struct(n))) as v"), "column 'v' is variant"),
        ({}, ("*", "n as Azimuth_Bad"), "a column has the name azimuth_bad"),
    ],
    ids=["partitioned", "routes", "variant", "name"],
)
def test_python_writes_what_spark_cannot(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture, more: Options, columns: tuple[str, ...], why: str
) -> None:
    """The table is the same, and the log says once why it takes longer."""
    pipeline.fill(range(20, 30))
    options = pipeline.options("delta-exactly-once", "table")
    other = str(pipeline.root / "other")
    options |= {key: value.replace("{other}", other) for key, value in more.items()}
    with caplog.at_level(logging.WARNING, "spark_sink"):
        pipeline.run(options, SparkLanding("delta-exactly-once", options), *columns, maxOffsetsPerTrigger="4")
    assert [one.getMessage() for one in caplog.records if why in one.getMessage()] != []
    assert len([one for one in caplog.records if "Spark cannot write" in one.getMessage()]) == 1
    address = other if "routes" in more else options["path"]
    assert verify(address).rows == 9
