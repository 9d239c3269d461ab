"""`AZAwarePartitioner` against librdkafka's mock cluster, and against metadata made by hand."""

import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message
from kafka import KafkaProducer
from kafka.cluster import ClusterMetadata
from kafka.partitioner import DefaultPartitioner
from kafka.serializer.abstract import Serializer
from kafka.structs import TopicPartition

from producer import AZAwarePartitioner, AZAwareProducer, PolicyError, RackWarning, Reason, UnknownTopicError
from producer.testing import MockCluster

TOPIC = "flights"
RACKS: tuple[str | None, ...] = ("az-a", "az-b", "az-c")


def connect(mock: MockCluster, partitioner: AZAwarePartitioner, **more: Any) -> KafkaProducer:
    """Connect kafka-python to the mock, which knows neither its newest requests nor its idempotence."""
    return KafkaProducer(
        bootstrap_servers=mock.bootstrap_servers,
        api_version=(2, 0),
        enable_idempotence=False,
        partitioner=partitioner,
        **more,
    )


def metadata(leaders: Sequence[int | None], racks: Sequence[str | None] = RACKS) -> ClusterMetadata:
    """Make metadata of one topic as kafka-python holds it."""
    cluster = ClusterMetadata()
    cluster._brokers = {n: SimpleNamespace(node_id=n, rack=rack) for n, rack in enumerate(racks, start=1)}
    set_leaders(cluster, leaders)
    return cluster


def set_leaders(cluster: ClusterMetadata, leaders: Sequence[int | None]) -> None:
    """Replace the partitions, as a metadata response does."""
    cluster._partitions = {
        TOPIC: {
            number: SimpleNamespace(leader_id=-1 if leader is None else leader, leader_epoch=1)
            for number, leader in enumerate(leaders)
        }
    }


def choose(partitioner: AZAwarePartitioner, cluster: ClusterMetadata, key: bytes | None = None, size: int = 10) -> int:
    """Ask for one record's partition."""
    return partitioner.partition(TOPIC, key, key, b"", b"v" * size, cluster)


@pytest.mark.parametrize("keys", ["local-mod", "local-hrw"])
def test_everything_goes_to_local_leaders_over_real_sockets(mock: MockCluster, keys: str) -> None:
    """No key and keys, in both local modes; the client's own wire counters agree with the count."""
    mock.create(TOPIC, [1, 2, 3] * 2)
    partitioner = AZAwarePartitioner(rack="az-b", keys=keys)
    producer = connect(mock, partitioner)
    partitioner.watch(producer)
    futures = [producer.send(TOPIC, b"v" * 100, f"{n}".encode() if n % 2 else None) for n in range(1_000)]
    producer.flush(10)
    assert {future.get(10).partition for future in futures} <= {1, 4}
    traffic = partitioner.traffic()
    assert traffic.local.records == 1_000
    assert traffic.cross == traffic.unknown == (0, 0)
    assert traffic.wire_bytes["az-b"] > traffic.local.bytes
    assert sum(sent for zone, sent in traffic.wire_bytes.items() if zone != "az-b") < 5_000
    producer.close()


@pytest.mark.parametrize("keys", ["global", "local-mod", "local-hrw"])
def test_both_clients_put_a_key_into_the_same_partition(mock: MockCluster, keys: str) -> None:
    """A service in either client may write the same keyed topic."""
    mock.create(TOPIC, [1, 2, 3] * 5)
    cluster = metadata([1, 2, 3] * 5)
    partitioner = AZAwarePartitioner(rack="az-c", keys=keys)
    seen: dict[bytes, int | None] = {}

    def delivered(_error: object, message: Message) -> None:
        seen[message.key() or b""] = message.partition()

    producer = AZAwareProducer(
        {"bootstrap.servers": mock.bootstrap_servers, "client.rack": "az-c", "log_level": 0}, keys=keys
    )
    for number in range(1_000):
        producer.produce(TOPIC, b"v", f"key-{number}", on_delivery=delivered)
    assert producer.flush(10) == 0
    assert len(seen) == 1_000
    assert {key: choose(partitioner, cluster, key) for key in seen} == seen
    producer.close()


@pytest.mark.parametrize("partitions", [1, 6, 7, 1_000])
def test_global_keys_stay_where_kafka_pythons_own_partitioner_puts_them(partitions: int) -> None:
    """A key keeps its partition when the partitioner is replaced: both map as Java does."""
    cluster = metadata([1 + number % 3 for number in range(partitions)])
    ours, theirs = AZAwarePartitioner(rack="az-a", keys="global"), DefaultPartitioner()
    for number in range(1_000):
        key = b"%d" % number * (number % 5)  # one in five is empty
        assert choose(ours, cluster, key) == theirs.partition(TOPIC, key, key, None, b"v", cluster)


def test_a_record_that_opens_a_batch_is_counted_once(mock: MockCluster) -> None:
    """kafka-python asks again after `on_new_batch`; tiny batches make it ask for nearly every record."""
    mock.create(TOPIC, [1, 1, 2])
    partitioner = AZAwarePartitioner(rack="az-a", batch_bytes=500)
    producer = connect(mock, partitioner, batch_size=500, linger_ms=5)
    futures = [producer.send(TOPIC, b"v" * 100) for _ in range(1_000)]
    producer.flush(10)
    places = Counter(future.get(10).partition for future in futures)
    assert partitioner.traffic().local == (1_000, 100_000)
    assert set(places) == {0, 1}
    producer.close()


def test_a_run_moves_on_by_bytes_not_by_batches() -> None:
    """KIP-794: a new batch (low rate, no linger) does not switch the partition; a full run does."""
    cluster = metadata([1, 1, 1])
    partitioner = AZAwarePartitioner(rack="az-a", batch_bytes=1_000)
    first = choose(partitioner, cluster)
    for _ in range(50):
        partitioner.on_new_batch(TOPIC, cluster, first)
        assert choose(partitioner, cluster) == first
    assert partitioner.traffic().local.records == 1
    runs = [choose(partitioner, cluster, size=100) for _ in range(1_000)]
    moves = sum(before != after for before, after in pairwise(runs))
    assert 20 <= moves <= 100  # at most one move in 1,000 bytes, two thirds of which hit another partition
    assert set(runs) == {0, 1, 2}


def test_a_leader_that_moves_in_place_is_noticed() -> None:
    """Hints in a response (KIP-951) change kafka-python's metadata without replacing it."""
    cluster = metadata([1, 2, 3])
    partitioner = AZAwarePartitioner(rack="az-a", keys="local-hrw")
    assert choose(partitioner, cluster) == 0
    assert cluster.update_partition_leader(TopicPartition(TOPIC, 0), 2, 5)
    assert choose(partitioner, cluster) in {0, 1, 2}
    assert choose(partitioner, cluster, b"k") in {0, 1, 2}
    assert partitioner.traffic().reasons[Reason.NO_LOCAL_LEADER].records == 2
    assert partitioner.traffic().local.records == 1


def test_a_hint_is_noticed_by_records_with_a_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They look at no leader; only the partition of records without a key is compared for each record."""
    monkeypatch.setattr("producer.clients.kafka_python.monotonic", lambda: 100.0)
    cluster = metadata([1, 1, 2])
    partitioner = AZAwarePartitioner(rack="az-a", keys="local-mod")
    keys = [b"%d" % number for number in range(50)]
    assert {choose(partitioner, cluster, key) for key in keys} == {0, 1}
    assert cluster.update_partition_leader(TopicPartition(TOPIC, 0), 3, 5)
    assert {choose(partitioner, cluster, key) for key in keys} == {1}
    assert cluster.update_partition_leader(TopicPartition(TOPIC, 2), 1, 6)
    assert {choose(partitioner, cluster, key) for key in keys} == {1, 2}
    assert partitioner.traffic().local.records == 150


def test_a_way_back_is_asked_for_and_taken_after_the_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells a client of it, so metadata is asked for; a flapping leader pulls nothing back and forth."""
    clock = [100.0]
    monkeypatch.setattr("producer.clients.kafka_python.monotonic", lambda: clock[0])
    cluster = metadata([2, 2, 3])
    asked: list[float] = []
    monkeypatch.setattr(cluster, "request_update", lambda: asked.append(clock[0]))
    partitioner = AZAwarePartitioner(rack="az-a", hold_s=5.0, refresh_s=10.0)
    for _ in range(60):
        choose(partitioner, cluster)
        clock[0] += 1.0
    assert len(asked) >= 5
    assert max(after - before for before, after in pairwise(asked)) <= 30
    set_leaders(cluster, [1, 2, 3])
    early = [choose(partitioner, cluster)]
    for _ in range(4):
        clock[0] += 1.0
        early.append(choose(partitioner, cluster))
    clock[0] += 2.0
    assert choose(partitioner, cluster) == 0
    assert partitioner.traffic().reasons[Reason.NO_LOCAL_LEADER].records == 60 + len(early)


def test_partitions_that_are_added_join_the_local_set() -> None:
    """A topic grows under a running producer."""
    cluster = metadata([1, 2, 3])
    partitioner = AZAwarePartitioner(rack="az-a", keys="local-mod")
    choose(partitioner, cluster)
    set_leaders(cluster, [1, 2, 3, 3, 2, 1])
    assert {choose(partitioner, cluster, b"%d" % n) for n in range(100)} == {0, 5}
    assert partitioner.traffic().local.records == 101


def test_partition_ids_may_have_gaps() -> None:
    """A broker in the middle of a deletion leaves partitions out; records without a key never go there."""
    cluster = metadata([1, 2, 1, 1, 2])
    for missing in (1, 2):
        del cluster._partitions[TOPIC][missing]
    partitioner = AZAwarePartitioner(rack="az-a", batch_bytes=10)
    assert {choose(partitioner, cluster) for _ in range(100)} == {0, 3}
    assert vars(partitioner)["_AZAwarePartitioner__partitioners"][TOPIC].leaders == (1, None, None, 1, 2)
    assert partitioner.traffic().local.records == 100


def test_a_topic_without_leaders_has_all_partitions_until_there_is_one() -> None:
    """The records wait in the client, as with its own partitioner, and the reason is counted."""
    cluster = metadata([None, None, None])
    partitioner = AZAwarePartitioner(rack="az-a", batch_bytes=10, hold_s=0.0)
    assert {choose(partitioner, cluster) for _ in range(100)} == {0, 1, 2}
    assert {choose(partitioner, cluster, b"key") for _ in range(10)} <= {0, 1, 2}
    assert partitioner.traffic().reasons[Reason.NO_LEADER].records == 100
    set_leaders(cluster, [2, None, 1])
    assert {choose(partitioner, cluster) for _ in range(100)} == {2}
    traffic = partitioner.traffic()
    assert traffic.local.records == 100
    assert traffic.unknown.records == 110


def test_records_of_a_topic_without_leaders_are_sent_when_there_is_one(mock: MockCluster) -> None:
    """Over real sockets: `send` raises no error, and the record goes to the partition that was chosen for it."""
    mock.create(TOPIC, [None, None])
    partitioner = AZAwarePartitioner(rack="az-a")
    producer = connect(mock, partitioner, retry_backoff_ms=10, reconnect_backoff_ms=10)
    future = producer.send(TOPIC, b"v")
    assert partitioner.traffic().reasons[Reason.NO_LEADER].records == 1
    assert not future.is_done
    mock.lead(TOPIC, [1, 1])
    assert future.get(30).partition in {0, 1}
    producer.close()


@pytest.mark.parametrize("known", [{}, {TOPIC: {}}], ids=["unknown topic", "topic without partitions"])
def test_a_topic_without_partitions_is_a_named_error(known: dict[str, Any]) -> None:
    """A ValueError, as kafka-python expects of a partitioner, and one of ours."""
    cluster = metadata([1])
    cluster._partitions = known
    with pytest.raises(UnknownTopicError, match="'flights' has no partitions") as caught:
        choose(AZAwarePartitioner(rack="az-a"), cluster)
    assert isinstance(caught.value, ValueError)


def test_a_serializer_that_raises_counts_nothing(mock: MockCluster) -> None:
    """The error is the serializer's own, before any partition is chosen."""
    mock.create(TOPIC, [1])

    class Broken(Serializer):
        """Refuses everything."""

        def serialize(self, topic: str, headers: object, data: object) -> bytes:
            """Raise."""
            raise RuntimeError(f"no bytes for {topic}, {headers}, {data}")

    partitioner = AZAwarePartitioner(rack="az-a")
    producer = connect(mock, partitioner, value_serializer=Broken())
    with pytest.raises(RuntimeError, match="no bytes"):
        producer.send(TOPIC, {"a": 1})
    assert partitioner.traffic().local.records == 0
    producer.close()


def test_unknown_racks_warn_once() -> None:
    """A zone name against zone ids: loud, once, and the records still go."""
    cluster = metadata([1, 2, 3], ("euw1-az1", "euw1-az2", "euw1-az3"))
    partitioner = AZAwarePartitioner(rack="eu-west-1a")
    with pytest.warns(RackWarning, match="'euw1-az1', 'euw1-az2', 'euw1-az3'"):
        choose(partitioner, cluster)
    choose(partitioner, cluster)
    assert partitioner.traffic().cross.records == 2
    assert partitioner.traffic().reasons[Reason.UNKNOWN_RACK].records == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"rack": ""},
        {"keys": "local"},
        {"keys": "local-hrw", "choose": "random"},
        {"keys": {"logs": "ignore"}, "choose": "random"},
        {"batch_bytes": -1},
        {"hold_s": -1},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_named(arguments: dict[str, Any]) -> None:
    """When the partitioner is made, not at the first record."""
    with pytest.raises(PolicyError):
        AZAwarePartitioner(**arguments)


def test_a_slow_leader_gets_less_from_kafka_python_too() -> None:
    """A watched producer tells how many batches wait; the partition behind the slow broker is chosen less often."""
    with MockCluster(("az-a", "az-a")) as slow:
        slow.create(TOPIC, [1, 2])
        partitioner = AZAwarePartitioner(rack="az-a", batch_bytes=500)
        producer = connect(slow, partitioner, batch_size=500, max_in_flight_requests_per_connection=1)
        partitioner.watch(producer)
        producer.send(TOPIC, b"v").get(10)
        slow.delay(2, 50)
        futures = []
        for number in range(1_500):
            futures.append(producer.send(TOPIC, b"v" * 100))
            if not number % 5:
                time.sleep(0.001)  # a steady rate that the fast leader keeps up with
        producer.flush(30)
        places = Counter(future.get(10).partition for future in futures)
        producer.close()
        assert places[1] < 0.4 * len(futures)


@pytest.mark.parametrize("keys", ["ignore", {"other": "global", "fl.*": "ignore", ".*": "global"}], ids=str)
@pytest.mark.parametrize("size", [100, 0], ids=["values", "no bytes"])
def test_ignored_keys_stay_local_and_change_partitions(keys: str | dict[str, str], size: int) -> None:
    """As in the other client; records of no bytes end a run, too, by their overhead."""
    cluster = metadata([1, 2, 1, 3])
    partitioner = AZAwarePartitioner(rack="az-a", keys=keys, batch_bytes=100)
    chosen = {choose(partitioner, cluster, b"%d" % n if size and n % 2 else None, size) for n in range(300)}
    assert chosen == {0, 2}
    assert partitioner.traffic().local.records == 300
