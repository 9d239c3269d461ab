"""The source in real Spark queries, against real brokers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import VariantVal

from assignors import GroupMember, HRWAssignor
from spark_sink import fixed_offsets, positions
from spark_sink.demo.cluster import Cluster
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
MakeTopic = Callable[..., str]


class Pipeline:
    """Queries of one test: a group, a place to write to, and the options they share."""

    def __init__(self, spark: SparkSession, cluster: Cluster, root: Path, group: str) -> None:
        self.spark, self.root, self.group = spark, root, group
        self.base = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "kafka.group.id": group,
            "kafka.session.timeout.ms": "6000",
            "kafka.heartbeat.interval.ms": "500",
            "kafka.metadata.max.age.ms": "1000",
            "kafkaConsumer.pollTimeoutMs": "20000",
        }
        self.queries: list[StreamingQuery] = []

    def start(self, name: str, sink: str = "parquet", *, now: bool = False, **options: str) -> StreamingQuery:
        """Start a query with a checkpoint of that name; `now` ends it when everything is read."""
        source = {**self.base, **options, "telemetry": str(self.telemetry(name)), "agent": name}
        path = str(self.root / sink)
        if sink == "delta-exactly-once":
            source["positions"] = path
        writer = (
            self.spark.readStream.format("kafka-group")
            .options(**source)
            .load()
            .writeStream.format(sink)
            .option("checkpointLocation", str(self.root / f"checkpoint-{name}"))
            .option("path", path)
        )
        if sink == "delta-exactly-once":
            writer = writer.option("kafka.group.id", self.group)
        trigger: dict[str, Any] = {"availableNow": True} if now else {"processingTime": "300 milliseconds"}
        query = writer.trigger(**trigger).start()
        self.queries.append(query)
        if now:
            assert query.awaitTermination(180), "AvailableNow did not end"
        return query

    def telemetry(self, name: str) -> Path:
        """Where the query of that name tells what it owns."""
        return self.root / f"{name}.jsonl"

    def told(self, name: str) -> dict[str, Any]:
        """The last progress report of the query of that name."""
        path = self.telemetry(name)
        lines = path.read_text().splitlines() if path.exists() else []
        return dict(json.loads(lines[-1])) if lines else {"owned": {}, "generation": -1, "lag_records": -1}

    def rows(self, topic: str) -> dict[int, list[int]]:
        """Offsets by partition in the parquet files, sorted."""
        table = pq.read_table(self.root / "parquet", columns=["topic", "partition", "offset"])
        found: dict[int, list[int]] = {}
        for row in table.to_pylist():
            if row["topic"] == topic:
                found.setdefault(row["partition"], []).append(row["offset"])
        return {partition: sorted(offsets) for partition, offsets in sorted(found.items())}


@pytest.fixture
def pipeline(spark: SparkSession, cluster: Cluster, tmp_path: Path, topic: MakeTopic) -> Iterator[Pipeline]:
    """Queries that are stopped when the test ends."""
    made = Pipeline(spark, cluster, tmp_path, topic("group"))
    yield made
    for query in made.queries:
        query.stop()


def fill(producer: Producer, topic: str, partitions: int, count: int) -> None:
    """Write so many records into each partition."""
    for partition in range(partitions):
        for number in range(count):
            producer.produce(topic, value=str(number), partition=partition)
    producer.flush()


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """Offsets of the group, as every lag tool sees them."""
    (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(one.topic, one.partition): one.offset for one in answer.result().topic_partitions}


def members(admin: AdminClient, group: str) -> int:
    """How many members the group has."""
    return len(admin.describe_consumer_groups([group])[group].result().members)


@pytest.mark.slow
def test_available_now_reads_everything_once_and_a_restart_goes_on(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, admin: AdminClient
) -> None:
    """It ends by itself, leaves the group, has committed what it read, and the next run reads what is new."""
    one, two = topic("one", partitions=3), topic("two")
    fill(producer, one, 3, 100)
    fill(producer, two, 1, 7)
    options = {"subscribe": f"{one},{two}", "maxOffsetsPerTrigger": "50"}
    query = pipeline.start("a", now=True, **options)
    assert [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]] == [50] * 6 + [7]
    ends = json.loads(query.recentProgress[0]["sources"][0]["latestOffset"])
    assert ends == {one: {"0": 100, "1": 100, "2": 100}, two: {"0": 7}}, "the lag can be read off the progress"
    assert pipeline.rows(one) == {p: list(range(100)) for p in range(3)}
    assert pipeline.rows(two) == {0: list(range(7))}
    assert committed(admin, pipeline.group) == {(one, 0): 100, (one, 1): 100, (one, 2): 100, (two, 0): 7}
    wait_until(lambda: members(admin, pipeline.group) == 0, 5, "leaving the group")
    fill(producer, two, 1, 3)
    pipeline.start("a", now=True, **options)
    assert pipeline.rows(two) == {0: list(range(10))}
    assert pipeline.rows(one) == {p: list(range(100)) for p in range(3)}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.matrix)])
def test_foreach_batch_writes_a_batch_once_whose_function_failed(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, spark: SparkSession, form: str
) -> None:
    """Spark calls the function again with the same batch; a second write in one call is refused."""
    name = topic("each", partitions=2)
    fill(producer, name, 2, 10)
    storage = {"catalog.warehouse": str(pipeline.root / "warehouse")} if form == "iceberg" else {}
    table = "iceberg://lake.raw.each" if form == "iceberg" else str(pipeline.root / "each")
    checkpoint = str(pipeline.root / "checkpoint-each")
    options = {"path": table, "kafka.group.id": pipeline.group, "checkpointLocation": checkpoint, **storage}
    calls: list[int] = []

    def write(batch: DataFrame, number: int) -> None:
        writer = batch.write.format(f"{form}-exactly-once").options(**options, batchId=number)
        writer.mode("append").save()
        calls.append(number)
        if len(calls) == 1:
            with pytest.raises(Exception, match="already written a part of batch 0"):
                writer.save()
            raise RuntimeError("the first call fails after its write")

    source = {**pipeline.base, "subscribe": name, "maxOffsetsPerTrigger": "12"}
    stream = spark.readStream.format("kafka-group").options(**source)
    query = stream.load().writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    with pytest.raises(Exception, match="the first call fails after its write"):
        query.trigger(availableNow=True).start().awaitTermination(120)
    assert query.trigger(availableNow=True).start().awaitTermination(120)
    assert calls == [0, 0, 1]
    found = verify(table, storage_options=storage)
    assert (found.rows, found.duplicates, found.missing) == (20, 0, 0)


@pytest.mark.slow
def test_a_batch_is_read_without_a_group(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, spark: SparkSession, admin: AdminClient
) -> None:
    """The columns of a stream, from one offset to another; a write of it needs the number of a batch."""
    name = topic("batch", partitions=2)
    fill(producer, name, 2, 10)
    source = {"kafka.bootstrap.servers": pipeline.base["kafka.bootstrap.servers"], "subscribe": name}
    bounds = {"startingOffsets": json.dumps({name: {"0": 4}}), "endingOffsets": json.dumps({name: {"1": 3}})}
    group = {"kafka.group.id": f"{name}-batch"}
    asked = spark.read.format("kafka-group").options(**source, **group, **bounds, includeTimestampType="true")
    rows = sorted((row.partition, row.offset, bytes(row.value), row.timestampType) for row in asked.load().collect())
    wanted = [(0, n) for n in range(4, 10)] + [(1, n) for n in range(3)]
    assert rows == [(partition, n, str(n).encode(), 0) for partition, n in wanted]
    groups = {found.group_id for found in admin.list_consumer_groups().result(10).valid}
    assert group["kafka.group.id"] not in groups
    with pytest.raises(Exception, match="is past the end of the log, 10"):
        spark.read.format("kafka-group").options(**source, endingOffsets=json.dumps({name: {"0": 11}})).load().count()
    with pytest.raises(Exception, match="in foreachBatch set the option 'batchId'"):
        asked.load().write.format("delta-exactly-once").options(path=str(pipeline.root)).mode("append").save()


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=[pytest.mark.slow, pytest.mark.matrix])])
def test_a_batch_is_written_once_with_the_offsets_of_its_read(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, spark: SparkSession, kind: str
) -> None:
    """A job that is repeated adds nothing; the next one begins where the table ends."""
    name = topic("once", partitions=2)
    source = {"kafka.bootstrap.servers": pipeline.base["kafka.bootstrap.servers"], "subscribePattern": f"{name}.*"}
    if kind == "iceberg":
        catalog = {"catalog.warehouse": str(pipeline.root / "warehouse")}
        table, path, storage = "iceberg://lake.raw.once", {"path": "lake.raw.once", **catalog}, catalog
    else:
        table = str(pipeline.root / "once")
        path, storage = {"path": table}, {}
    for count in (10, 7):
        fill(producer, name, 2, count)
        ranges = fixed_offsets({**source, **storage, "kafka.group.id": pipeline.group, "positions": table})
        rows = spark.read.format("kafka-group").options(**ranges).load()
        fill(producer, name, 1, 1)  # not of this read
        for _ in range(2):
            rows.write.format(f"{kind}-exactly-once").options(**{**ranges, **path}).mode("append").save()
    found = verify(table, storage_options=storage)
    assert (found.rows, found.duplicates, found.missing) == (35, 0, 0)
    assert positions(table, pipeline.group, storage) == {(name, 0): 18, (name, 1): 17}


@pytest.mark.slow
def test_available_now_waits_for_the_session_of_a_member_that_died(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer
) -> None:
    """Until then the join is under way and nothing is assigned, which must not look like nothing to read."""
    name = topic("died", partitions=2)
    fill(producer, name, 2, 10)
    config = {"bootstrap_servers": pipeline.base["kafka.bootstrap.servers"], "group_id": pipeline.group}
    died = GroupMember({**config, "session_timeout_ms": 15_000}, topics=[name], assignors=[HRWAssignor()]).start()
    died.wait_for(lambda now: len(now.partitions) == 2, 30)
    died.close(leave=False)
    pipeline.start("a", now=True, subscribe=name)
    assert pipeline.rows(name) == {0: list(range(10)), 1: list(range(10))}


@pytest.mark.slow
def test_a_batch_that_was_not_finished_is_replayed_with_its_own_ranges(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer
) -> None:
    """Only the offset determines the records of a batch: later records and the group play no part in a replay."""
    name = topic("replayed", partitions=2)
    fill(producer, name, 2, 50)
    pipeline.start("a", "delta-exactly-once", now=True, subscribe=name)
    commits = sorted((pipeline.root / "checkpoint-a" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink()
    fill(producer, name, 2, 25)
    pipeline.start("a", "delta-exactly-once", now=True, subscribe=name)
    found = verify(str(pipeline.root / "delta-exactly-once"))
    assert (found.rows, found.duplicates, found.missing) == (150, 0, 0)


@pytest.mark.slow
def test_two_queries_share_the_partitions_and_take_over(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, admin: AdminClient
) -> None:
    """Ownership moves between running queries in both directions, and the table has every record once."""
    name = topic("shared", partitions=6)
    everything = set(range(6))
    fill(producer, name, 6, 20)

    def owned(agent: str) -> set[int]:
        return set(pipeline.told(agent)["owned"].get(name, []))

    def owners() -> list[set[int]]:
        return [owned("a"), owned("b")]

    first = pipeline.start("a", "delta-exactly-once", subscribePattern=name)
    wait_until(lambda: owned("a") == everything, what="the first owning all")
    second = pipeline.start("b", "delta-exactly-once", subscribePattern=name)
    wait_until(
        lambda: [len(one) for one in owners()] == [3, 3] and owned("a") | owned("b") == everything, what="sharing"
    )
    fill(producer, name, 6, 20)
    first.stop()
    wait_until(lambda: owned("b") == everything, what="taking over")
    fill(producer, name, 6, 20)
    wait_until(
        lambda: committed(admin, pipeline.group) == {(name, p): 60 for p in everything},
        what="the group catching up while the query idles",
    )
    second.stop()
    found = verify(str(pipeline.root / "delta-exactly-once"))
    assert (found.rows, found.duplicates, found.missing) == (360, 0, 0)


@pytest.mark.slow
def test_partitions_and_topics_that_are_added_are_read_from_their_beginning(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, admin: AdminClient
) -> None:
    """Also with startingOffsets=latest, which speaks of the moment at which the group began."""
    name = topic("growing")
    fill(producer, name, 1, 5)
    query = pipeline.start("a", subscribePattern=f"{name}.*", startingOffsets="latest")
    wait_until(lambda: committed(admin, pipeline.group) == {(name, 0): 5}, what="beginning at the end")
    fill(producer, name, 1, 2)
    admin.create_partitions([NewPartitions(name, 2)])[name].result(30)
    later = topic("growing.later")
    fill(producer, later, 1, 3)
    wait_until(lambda: (name, 1) in committed(admin, pipeline.group), what="the new partition")
    fresh = Producer({"bootstrap.servers": pipeline.base["kafka.bootstrap.servers"]})  # knows the new partition
    fresh.produce(name, value=b"x", partition=1)
    fresh.flush()
    expected = {(name, 0): 7, (name, 1): 1, (later, 0): 3}
    wait_until(lambda: committed(admin, pipeline.group) == expected, what="reading what was added")
    query.stop()
    assert pipeline.rows(name) == {0: [5, 6], 1: [0]}
    assert pipeline.rows(later) == {0: [0, 1, 2]}


def test_an_option_that_is_wrong_stops_before_anything_is_read(pipeline: Pipeline) -> None:
    """The sentence of the error reaches the user through Spark."""
    with pytest.raises(Exception, match="kafka-group has no option 'subscribepatern'"):
        pipeline.start("a", subscribePatern=".*")


def test_json_becomes_columns_and_poison_goes_into_quarantine(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer
) -> None:
    """Good records keep flowing; each bad one is stored next to the table with its reason and its bytes."""
    name = topic("json")
    for value in (b'{"id": 1, "name": "a"}', b"poison", b'{"id": "one"}', None, b'{"id": 2}'):
        producer.produce(name, value=value, key=b"k")
    producer.flush()
    schema = '{"id": "bigint", "name": "string"}'
    pipeline.start("a", "delta-exactly-once", now=True, subscribe=name, valueFormat="json", valueSchema=schema)
    table = str(pipeline.root / "delta-exactly-once")
    good = DeltaTable(table).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [(row["offset"], row["id"], row["name"]) for row in good] == [(0, 1, "a"), (4, 2, None)]
    bad = DeltaTable(quarantine_of(table)).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [(row["offset"], row["error_class"], row["value"]) for row in bad] == [
        (1, "NotJson", b"poison"),
        (2, "WrongType", b'{"id": "one"}'),
        (3, "NullValue", None),
    ]
    found = verify(table)
    assert (found.duplicates, found.missing) == (0, 0)


@pytest.mark.slow
def test_json_of_any_shape_becomes_a_variant(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, spark: SparkSession
) -> None:
    """Through Spark as its own type, with SQL on it on the way, and into a Delta table that Spark's own type has."""
    name = topic("variant")
    for value in (b'{"id": 1, "tags": ["a"]}', b"poison", b"[2]", None, b'{"id": "three"}'):
        producer.produce(name, value=value)
    producer.flush()
    options = {**pipeline.base, "subscribe": name, "valueFormat": "json", "valueSchema": "variant"}
    frame = spark.readStream.format("kafka-group").options(**options).load()
    assert frame.schema["value"].dataType.simpleString() == "variant"
    path = str(pipeline.root / "variants")
    frame = frame.withColumn("id", frame.value.cast("string"))
    writer = frame.writeStream.format("delta-exactly-once").option("path", path)
    writer = writer.option("kafka.group.id", pipeline.group).option("checkpointLocation", str(pipeline.root / "c"))
    query = writer.trigger(availableNow=True).start()
    pipeline.queries.append(query)
    assert query.awaitTermination(120)
    rows = DeltaTable(path).to_pyarrow_table().sort_by("offset").to_pylist()
    found = {row["offset"]: VariantVal(row["value"]["value"], row["value"]["metadata"]).toPython() for row in rows}
    assert found == {0: {"id": 1, "tags": ["a"]}, 2: [2], 4: {"id": "three"}}
    assert [row["id"] for row in rows] == ['{"id":1,"tags":["a"]}', "[2]", '{"id":"three"}']
    assert DeltaTable(quarantine_of(path)).to_pyarrow_table().num_rows == 2
    assert verify(path).ok


@pytest.mark.slow
def test_a_recreated_topic_is_refused_though_it_has_grown_past_the_position(
    pipeline: Pipeline, topic: MakeTopic, producer: Producer, admin: AdminClient
) -> None:
    """Its records at the old offsets would never be read, and nothing about the offsets shows it."""
    name = topic("anew")
    fill(producer, name, 1, 5)
    pipeline.start("a", "delta-exactly-once", now=True, subscribe=name)
    admin.delete_topics([name])[name].result(30)
    wait_until(lambda: name not in admin.list_topics(timeout=10).topics, what="deleting")
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    fill(Producer({"bootstrap.servers": pipeline.base["kafka.bootstrap.servers"]}), name, 1, 20)
    with pytest.raises(StreamingQueryException, match=f"{name}: the topic was deleted and recreated"):
        pipeline.start("a", "delta-exactly-once", now=True, subscribe=name)
    # With another checkpoint the source knows nothing of it, and the table does.
    with pytest.raises(StreamingQueryException, match=f"{name}: the table has records of an earlier topic"):
        pipeline.start("b", "delta-exactly-once", now=True, subscribe=name)
    found = verify(str(pipeline.root / "delta-exactly-once"))
    assert (found.rows, found.duplicates, found.missing) == (5, 0, 0)
