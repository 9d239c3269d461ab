"""A partitioner of the application, composed with the zone, in kafka-python."""

from collections import Counter
from collections.abc import Sequence

import pytest

from producer import AZAwarePartitioner, PolicyError, Reason
from producer.testing import MockCluster
from tests.unit.producer.clients.test_kafka_python import TOPIC, choose, connect, metadata, set_leaders

LOCAL = (0, 3, 6)


def test_a_callable_chooses_for_records_with_and_without_a_key(mock: MockCluster) -> None:
    """It gets the serialized key and the partitions of the zone, and its answer is counted as local."""
    mock.create(TOPIC, [1, 2, 3] * 3)
    asked: list[tuple[bytes | None, tuple[int, ...]]] = []

    def by_length(key: bytes | None, candidates: Sequence[int]) -> int:
        asked.append((key, tuple(candidates)))
        return candidates[len(key or b"") % len(candidates)]

    partitioner = AZAwarePartitioner(rack="az-a", choose=by_length)
    producer = connect(mock, partitioner, linger_ms=50)
    partitioner.watch(producer)
    futures = [producer.send(TOPIC, b"12345", key, [("h", b"12")]) for key in (None, b"k", b"kk", None)]
    producer.flush(30)
    assert [future.get(10).partition for future in futures] == [0, 3, 6, 0]
    assert asked == [(None, LOCAL), (b"k", LOCAL), (b"kk", LOCAL), (None, LOCAL)]
    assert partitioner.traffic().local == (4, 4 * 5 + 3 + 4 * 3)
    assert partitioner.traffic().reasons.keys() == {Reason.LOCAL}
    producer.close()


def test_round_robin_skips_no_partition_where_a_record_opens_a_batch(mock: MockCluster) -> None:
    """kafka-python asks twice for such a record; with a new choice each time, half of the partitions get none."""
    mock.create(TOPIC, [1, 2, 3] * 3)
    partitioner = AZAwarePartitioner(rack="az-a", choose="round_robin")
    producer = connect(mock, partitioner, batch_size=1)
    futures = [producer.send(TOPIC, b"v" * 10) for _ in range(30)]
    producer.flush(30)
    assert Counter(future.get(10).partition for future in futures) == dict.fromkeys(LOCAL, 10)
    assert partitioner.traffic().local == (30, 300)
    producer.close()


def test_random_reaches_all_partitions_of_the_zone_and_follows_its_leaders() -> None:
    """The candidates are those of the moment, also where a leader moved in place."""
    cluster = metadata([1, 2, 3] * 2)
    partitioner = AZAwarePartitioner(rack="az-a", choose="random")
    assert {choose(partitioner, cluster, key) for key in [b"k", None] * 50} == {0, 3}
    cluster._partitions[TOPIC][0].leader_id = 2
    assert {choose(partitioner, cluster) for _ in range(50)} <= {0, 3}
    assert {choose(partitioner, cluster) for _ in range(50)} == {3}
    set_leaders(cluster, [2, 1, 1, 2])
    assert {choose(partitioner, cluster) for _ in range(50)} == {1, 2}
    assert partitioner.traffic().local.records == 250


@pytest.mark.parametrize("wrong", [lambda _key, _local: 1, lambda _key, _local: 1 // 0], ids=["elsewhere", "error"])
def test_a_wrong_choice_is_an_error_of_the_call(mock: MockCluster, wrong: object) -> None:
    """It is neither sent nor counted."""
    mock.create(TOPIC, [1, 2, 3])
    partitioner = AZAwarePartitioner(rack="az-a", choose=wrong)  # type: ignore[arg-type]  # lambdas without types
    producer = connect(mock, partitioner)
    with pytest.raises(PolicyError, match=r"choose\(\)"):
        producer.send(TOPIC, b"v")
    assert partitioner.traffic().local.records == 0
    producer.close()


def test_a_name_that_is_no_choice_is_refused() -> None:
    """When the partitioner is made."""
    with pytest.raises(PolicyError, match="choose='nearest'"):
        AZAwarePartitioner(rack="az-a", choose="nearest")
