"""A task reads exactly its ranges, whatever the log looks like: by librdkafka, and from the leaders themselves."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from spark_sink.demo.cluster import Cluster
from spark_sink.errors import DataLossError, FetchError
from spark_sink.fetch import range_reader
from spark_sink.fetch.range_reader import fetch
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Range

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_consumer_is_left")]
MakeTopic = Callable[..., str]


@pytest.fixture(params=[False, True], ids=["librdkafka", "record batches"])
def settings(cluster: Cluster, request: pytest.FixtureRequest) -> FetchSettings:
    """Read from the shared cluster."""
    kafka = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "fetch"}
    return FetchSettings(kafka=kafka, poll_timeout_s=20.0, record_batches=request.param)


def rows(batches: Iterator[pa.RecordBatch]) -> dict[tuple[str, int], list[int]]:
    """Offsets by partition, in the order in which they came."""
    found: dict[tuple[str, int], list[int]] = {}
    for batch in batches:
        for topic, partition, offset in zip(*(batch.column(n).to_pylist() for n in range(3)), strict=True):
            found.setdefault((topic, partition), []).append(offset)
    return found


def fill(producer: Producer, topic: str, partition: int, count: int, first: int = 0) -> None:
    """Write records whose value is their number."""
    for number in range(first, first + count):
        producer.produce(topic, value=str(number), key=str(number % 10), partition=partition)
    producer.flush()


def watermarks(cluster: Cluster, topic: str, partition: int = 0) -> tuple[int, int]:
    """First offset and exclusive end of a log."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "watermarks"})
    try:
        return consumer.get_watermark_offsets(KafkaPartition(topic, partition), timeout=10.0)
    finally:
        consumer.close()


def test_a_task_reads_its_ranges_and_nothing_else(
    topic: MakeTopic, producer: Producer, settings: FetchSettings
) -> None:
    """Ranges in the middle of a log, at its end, of several topics; the log continues behind them."""
    one, two = topic("one", partitions=2), topic("two")
    fill(producer, one, 0, 300)
    fill(producer, one, 1, 300)
    fill(producer, two, 0, 100)
    pieces = [Range(one, 0, 10, 290), Range(one, 1, 299, 300), Range(two, 0, 0, 1)]
    assert rows(fetch(pieces, settings)) == {
        (one, 0): list(range(10, 290)),
        (one, 1): [299],
        (two, 0): [0],
    }
    assert rows(fetch([Range(one, 0, 5, 5)], settings)) == {}


def test_columns_hold_what_was_produced(topic: MakeTopic, producer: Producer, settings: FetchSettings) -> None:
    """Nulls stay nulls, empty stays empty, times are UTC, headers keep order and doubles."""
    name = topic("columns")
    producer.produce(name, value=b"v", key=b"k", timestamp=1_700_000_000_123, headers=[("h", b"1"), ("h", None)])
    producer.produce(name, value=None, key=None, timestamp=1_700_000_000_124)
    producer.produce(name, value=b"", key=b"", timestamp=1_700_000_000_125)
    producer.flush()
    with_headers = replace(settings, headers=True, poll_timeout_s=20.0)
    table = pa.Table.from_batches(list(fetch([Range(name, 0, 0, 3)], with_headers)))
    assert table.column("topic").to_pylist() == [name] * 3
    assert table.column("key").to_pylist() == [b"k", None, b""]
    assert table.column("value").to_pylist() == [b"v", None, b""]
    assert table.column("headers").to_pylist() == [
        [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
        None,
        None,
    ]
    stamps = table.column("timestamp").cast(pa.int64()).to_pylist()
    assert stamps == [1_700_000_000_123_000, 1_700_000_000_124_000, 1_700_000_000_125_000]


def test_the_consumer_is_handed_on_and_reads_right_again(
    topic: MakeTopic, producer: Producer, settings: FetchSettings
) -> None:
    """The second batch begins before, inside and behind the first one. Record batches need no consumer."""
    name = topic("again")
    fill(producer, name, 0, 100)
    assert rows(fetch([Range(name, 0, 20, 60)], settings)) == {(name, 0): list(range(20, 60))}
    handed_on = list(range_reader._idle.values())
    assert len(handed_on) == (not settings.record_batches)
    for begin, end in ((0, 30), (50, 100), (20, 60)):
        assert rows(fetch([Range(name, 0, begin, end)], settings)) == {(name, 0): list(range(begin, end))}
    assert list(range_reader._idle.values()) == handed_on


def test_a_task_that_is_given_up_does_not_hand_its_consumer_on(
    topic: MakeTopic, producer: Producer, settings: FetchSettings
) -> None:
    """What was fetched for it would come into the next batch."""
    name = topic("given-up")
    fill(producer, name, 0, 100)
    batches = fetch([Range(name, 0, 0, 100)], replace(settings, batch_bytes=1))
    next(batches)
    batches.close()  # type: ignore[attr-defined]  # a generator
    assert not range_reader._idle


def test_aborted_records_and_control_records_are_gaps(
    cluster: Cluster, topic: MakeTopic, settings: FetchSettings
) -> None:
    """The range ends in a control record, that no reader ever sees; aborted records are not read (KIP-98)."""
    name = topic("transactions")
    transactional = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
    transactional.init_transactions(30)
    for commit in (True, False, True, False):
        transactional.begin_transaction()
        for _ in range(10):
            transactional.produce(name, value=str(commit))
        transactional.flush()
        (transactional.commit_transaction if commit else transactional.abort_transaction)(30)
    # The markers are written after the commit has been answered.
    deadline = time.monotonic() + 30
    while watermarks(cluster, name) != (0, 44):
        assert time.monotonic() < deadline
    began = time.monotonic()
    assert rows(fetch([Range(name, 0, 0, 44)], settings)) == {(name, 0): [*range(10), *range(22, 32)]}
    assert rows(fetch([Range(name, 0, 11, 22)], settings)) == {}
    assert rows(fetch([Range(name, 0, 33, 44)], settings)) == {}
    assert rows(fetch([Range(name, 0, 10, 11)], settings)) == {}
    assert time.monotonic() - began < settings.poll_timeout_s, "an end that never comes is not waited for"
    dirty = replace(settings, kafka={**settings.kafka, "isolation.level": "read_uncommitted"})
    assert len(rows(fetch([Range(name, 0, 0, 44)], dirty))[name, 0]) == 40


def test_an_open_transaction_ends_the_range_before_it(
    cluster: Cluster, topic: MakeTopic, producer: Producer, settings: FetchSettings
) -> None:
    """The last stable offset is the end for read_committed, and the task does not wait for the transaction."""
    name = topic("open")
    fill(producer, name, 0, 5)
    transactional = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce(name, value=b"open")
    transactional.flush()
    assert rows(fetch([Range(name, 0, 0, 5)], settings)) == {(name, 0): list(range(5))}
    transactional.abort_transaction(30)


@pytest.mark.long
def test_compaction_leaves_gaps_and_the_task_still_ends(
    topic: MakeTopic, producer: Producer, settings: FetchSettings
) -> None:
    """Of each key the last record stays; the offsets between are gone."""
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
        "delete.retention.ms": "100",
    }
    name = topic("compacted", config=config)
    fill(producer, name, 0, 500)
    deadline = time.monotonic() + 60
    while True:
        time.sleep(0.3)
        fill(producer, name, 0, 1, first=10_000)  # rolls the segment: an active one is never compacted
        found = rows(fetch([Range(name, 0, 0, 500)], settings)).get((name, 0), [])
        if len(found) < 500:
            break
        assert time.monotonic() < deadline, "the broker did not compact"
    assert found == sorted(set(found))
    assert found[-10:] == list(range(490, 500)) or len(found) < 10, "key 0 was written again behind the range"


@pytest.fixture
def expired(admin: AdminClient, topic: MakeTopic, producer: Producer) -> str:
    """A topic with offsets 0-99 of which the first 40 are gone."""
    name = topic("expired")
    fill(producer, name, 0, 100)
    deadline = time.monotonic() + 30
    while True:
        try:
            admin.delete_records([KafkaPartition(name, 0, 40)])[KafkaPartition(name, 0)].result(30)
        except KafkaException as error:
            # The broker that is asked for leaders may be the last to hear of a new topic.
            if error.args[0].code() != KafkaError._NOENT or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return name


def test_records_that_are_gone_stop_the_task(expired: str, settings: FetchSettings) -> None:
    """The message names topic, partition, offset and the way out."""
    with pytest.raises(DataLossError, match=rf"{expired}/0: offset 10 is to be read, .*\[40, 100\).*failOnDataLoss"):
        rows(fetch([Range(expired, 0, 10, 100)], settings))


def test_records_that_are_gone_are_passed_over_where_that_is_allowed(expired: str, settings: FetchSettings) -> None:
    """The rest of the range is read; a range that is gone whole is none."""
    allowed = replace(settings, fail_on_data_loss=False)
    assert rows(fetch([Range(expired, 0, 10, 100)], allowed)) == {(expired, 0): list(range(40, 100))}
    assert rows(fetch([Range(expired, 0, 10, 20)], allowed)) == {}


@pytest.mark.long
def test_a_topic_that_is_deleted_stops_the_task(topic: MakeTopic, settings: FetchSettings) -> None:
    """It does not wait for records that cannot come."""
    name = topic("kept")
    with pytest.raises(DataLossError, match="missing/0: deleted"):
        rows(fetch([Range(f"{name}-missing", 0, 0, 10)], settings))


def test_silence_is_an_error_that_names_what_is_missing(topic: MakeTopic, settings: FetchSettings) -> None:
    """A range beyond the log's end never comes; the task says so instead of hanging."""
    name = topic("silent")
    short = replace(settings, poll_timeout_s=1.0, fail_on_data_loss=False)
    with pytest.raises((FetchError, DataLossError), match=f"{name}/0"):
        rows(fetch([Range(name, 0, 0, 10)], short))


def test_large_values_make_small_batches(cluster: Cluster, topic: MakeTopic, settings: FetchSettings) -> None:
    """A batch is closed by bytes as well as by records, and an 11 MB record is read."""
    name = topic("large", config={"max.message.bytes": "20000000"})
    big = Producer({"bootstrap.servers": cluster.bootstrap_servers, "message.max.bytes": 20_000_000})
    for size in (11_000_000, 10, 6_000_000, 6_000_000, 6_000_000):
        big.produce(name, value=b"x" * size)
    big.flush()
    bounded = replace(settings, batch_bytes=8_000_000)
    sizes = [
        pa.compute.binary_length(batch.column("value")).to_pylist() for batch in fetch([Range(name, 0, 0, 5)], bounded)
    ]
    assert [size for batch in sizes for size in batch] == [11_000_000, 10, 6_000_000, 6_000_000, 6_000_000]


def test_the_topic_ids_of_the_plan_are_compared_with_those_after_reading(
    cluster: Cluster, topic: MakeTopic, producer: Producer, settings: FetchSettings
) -> None:
    """Librdkafka reads by name, so the records may be those of a topic that was recreated meanwhile."""
    name = topic("ids")
    producer.produce(name, value="1", partition=0)
    producer.flush()
    group = PartitionOffsets(
        SourceOptions.parse(
            {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": "ids", "subscribe": name}
        )
    )
    identities = group.identities([name])
    assert identities
    read = list(fetch([Range(name, 0, 0, 1)], settings, identities))
    assert sum(batch.num_rows for batch in read) == 1
    with pytest.raises(DataLossError, match="recreated while it was read"):
        list(fetch([Range(name, 0, 0, 1)], settings, {name: "cluster/AAAAAAAAAAAAAAAAAAAAAQ"}))
