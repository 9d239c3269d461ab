"""The sink in a real Spark query, fed by a small source that writes the same offsets as kafka-group."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from spark_sink import DeltaExactlyOnceSink, positions
from spark_sink.lake.holes_and_doubles import verify

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

RANGES = [(0, 40), (40, 100), (100, 101)]


class _Slice(InputPartition):
    def __init__(self, topic: str, begin: int, end: int) -> None:
        self.topic, self.begin, self.end = topic, begin, end


class _CannedReader(DataSourceStreamReader):
    """Two topics, three batches, then nothing new; each range is split over two tasks."""

    def __init__(self) -> None:
        self.batch = -1

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        return {"v": 1, "partitions": {}}

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 -- Spark knows this form too
        self.batch = min(self.batch + 1, len(RANGES) - 1)
        begin, end = RANGES[self.batch]
        return {"v": 1, "partitions": {topic: {"0": [begin, end, 1]} for topic in ("a", "b")}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        del start
        found: list[InputPartition] = []
        for topic, ranges in end["partitions"].items():
            first, last, _ = ranges["0"]
            middle = (first + last) // 2
            found += [_Slice(topic, first, middle), _Slice(topic, middle, last)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Slice)
        offsets = list(range(partition.begin, partition.end))
        yield pa.record_batch(
            {
                "topic": pa.array([partition.topic] * len(offsets), pa.string()),
                "partition": pa.array([0] * len(offsets), pa.int32()),
                "offset": pa.array(offsets, pa.int64()),
                "timestamp": pa.array([one * 1000 for one in offsets], pa.timestamp("us", tz="UTC")),
                "key": pa.array([None] * len(offsets), pa.binary()),
                "value": pa.array([b"%d" % one for one in offsets], pa.binary()),
            }
        )


class _CannedSource(DataSource):
    """A source with the columns and offsets of kafka-group."""

    @classmethod
    def name(cls) -> str:
        return "canned"

    def schema(self) -> str:
        return "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"

    def streamReader(self, schema: StructType) -> _CannedReader:  # noqa: N802 -- Spark's name
        del schema
        return _CannedReader()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One session for all tests here; its time zone is not UTC on purpose."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    from pyspark import cloudpickle  # noqa: PLC0415 -- only for this session

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # of pyspark
    session.dataSource.register(_CannedSource)
    session.dataSource.register(DeltaExactlyOnceSink)
    yield session
    session.stop()


def _start(spark: SparkSession, root: Path, checkpoint: str = "checkpoint", **options: str) -> StreamingQuery:
    return (
        spark.readStream.format("canned")
        .load()
        .writeStream.format("delta-exactly-once")
        .option("path", str(root / "table"))
        .option("kafka.group.id", "g")
        .option("checkpointLocation", str(root / checkpoint))
        .options(**options)
        .start()
    )


def _drain(query: StreamingQuery) -> None:
    query.processAllAvailable()
    query.stop()


def test_three_batches_land_once(spark: SparkSession, tmp_path: Path) -> None:
    """Rows, positions and values, with a session time zone that is not UTC."""
    _drain(_start(spark, tmp_path))
    report = verify(str(tmp_path / "table"))
    assert (report.rows, report.ok) == (202, True)
    assert positions(str(tmp_path / "table"), "g") == {("a", 0): 101, ("b", 0): 101}
    rows = DeltaTable(str(tmp_path / "table")).to_pyarrow_table().sort_by("offset")
    assert set(zip(rows["offset"].to_pylist(), rows["value"].to_pylist(), strict=True)) == {
        (n, b"%d" % n) for n in range(101)
    }
    assert [one.timestamp() for one in rows["timestamp"].to_pylist()[:4:2]] == [0, 0.001]


def test_a_query_may_have_a_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives the sink the name as an option of its own, which no user wrote."""
    named = spark.readStream.format("canned").load().writeStream.queryName("flights of today")
    options = {"kafka.group.id": "g", "checkpointLocation": str(tmp_path / "checkpoint")}
    _drain(named.format("delta-exactly-once").options(**options).start(str(tmp_path / "table")))
    assert verify(str(tmp_path / "table")).rows == 202


@pytest.mark.slow
def test_replays_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A crash after the commit, before Spark noted it; and a checkpoint that was lost."""
    _drain(_start(spark, tmp_path))
    for lost in (tmp_path / "checkpoint" / "commits").glob("*2*"):
        lost.unlink()
    _drain(_start(spark, tmp_path))
    _drain(_start(spark, tmp_path, "another"))
    report = verify(str(tmp_path / "table"))
    assert (report.rows, report.ok) == (202, True)


@pytest.mark.slow
def test_a_deleted_table_stops_the_query_with_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """Silently beginning a new table in its place would hide that rows are gone."""
    _drain(_start(spark, tmp_path))
    (tmp_path / "table").rename(tmp_path / "gone")
    for lost in (tmp_path / "checkpoint" / "commits").glob("*2*"):
        lost.unlink()
    query = _start(spark, tmp_path)
    with pytest.raises(Exception, match=r"there is no table, but the checkpoint|the table was deleted while"):
        query.processAllAvailable()
    query.stop()


@pytest.mark.slow
def test_partition_columns_are_kept_in_the_log(spark: SparkSession, tmp_path: Path) -> None:
    """Readers prune by them; the data files do not hold them."""
    _drain(_start(spark, tmp_path, partitionBy="topic"))
    handle = DeltaTable(str(tmp_path / "table"))
    assert handle.metadata().partition_columns == ["topic"]
    assert verify(str(tmp_path / "table")).ok
    assert handle.to_pyarrow_table(partitions=[("topic", "=", "a")]).num_rows == 101
