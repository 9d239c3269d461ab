"""Every partitioner of librdkafka: with `keys="global"` a record goes where the bare client sends it."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from producer import AZAwareAIOProducer, AZAwareProducer
from producer.clients import configured_policy
from producer.testing import MockCluster
from tests.unit.producer.deliveries import config

HASHING = ["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]
NULL_KEYS_ARE_HASHED = ["consistent", "murmur2", "fnv1a"]
COUNTS = (1, 2, 7, 12, 33)
RANDOM = Random(20_261_122)
KEYS = [b"a", "Zürich".encode(), *(RANDOM.randbytes(RANDOM.randrange(1, 60)) for _ in range(120))]


def topics(mock: MockCluster) -> list[str]:
    """Create a topic of each size, its leaders in all zones."""
    for count in COUNTS:
        mock.create(f"of-{count}", [1 + number % 3 for number in range(count)])
    return [f"of-{count}" for count in COUNTS]


def places(
    producer: Producer, names: list[str], keys: list[bytes | None], way: str = "produce"
) -> list[tuple[str, bytes | None, int | None]]:
    """Send each key to each topic; return the partitions that the records went to."""
    seen: list[tuple[str, bytes | None, int | None]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None
        seen.append((message.topic() or "", message.key(), message.partition()))

    for name in names:
        if way == "batch":
            producer.produce_batch(name, [{"value": b"v", "key": key} for key in keys], on_delivery=delivered)
        else:
            for key in keys:
                producer.produce(name, b"v", key, on_delivery=delivered)
    assert producer.flush(20) == 0
    producer.close()
    return sorted(seen, key=str)


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("way", ["produce", "batch"])
@pytest.mark.parametrize("name", HASHING)
def test_a_key_goes_where_the_bare_client_sends_it(mock: MockCluster, name: str, way: str) -> None:
    """From the first record on, at every number of partitions: a change of the client must not move keys."""
    names = topics(mock)
    keys: list[bytes | None] = [*KEYS] if name == "consistent_random" else [b"", *KEYS]  # it takes an empty key as none
    ours = places(AZAwareProducer(config(mock, partitioner=name)), names, keys, way)
    assert ours == places(Producer(config(mock, partitioner=name)), names, keys)


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("name", NULL_KEYS_ARE_HASHED)
def test_a_partitioner_that_hashes_null_keys_sends_them_to_its_one_partition(mock: MockCluster, name: str) -> None:
    """The names without `_random` map all records without a key to a single partition."""
    names = topics(mock)
    ours = places(AZAwareProducer(config(mock, partitioner=name), batch_bytes=5), names, [None] * 20)
    assert ours == places(Producer(config(mock, partitioner=name)), names, [None] * 20)


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("name", [name for name in HASHING if name not in NULL_KEYS_ARE_HASHED])
def test_records_without_a_key_stay_local_where_the_partitioner_leaves_them_free(mock: MockCluster, name: str) -> None:
    """An empty key is a key, except to `consistent_random`."""
    mock.create("flights", [1, 2, 3] * 4)
    keys: list[bytes | None] = [None, b""] if name == "consistent_random" else [None]
    producer = AZAwareProducer(config(mock, partitioner=name), batch_bytes=1)
    assert {partition for _, _, partition in places(producer, ["flights"], keys * 100)} == {0, 3, 6, 9}
    traffic = producer.traffic()
    assert traffic.local.records == sum(count.records for count in traffic.reasons.values()) == 100 * len(keys)


@pytest.mark.usefixtures("hot")
@pytest.mark.parametrize("keys", ["global", "local-mod", "local-hrw"])
def test_random_scatters_the_records_of_one_key(mock: MockCluster, keys: str) -> None:
    """The partitioner says that keys mean nothing; a local mode scatters them within the zone."""
    mock.create("flights", [1, 2, 3] * 4)
    producer = AZAwareProducer(config(mock, partitioner="random"), keys=keys)
    found = {partition for _, _, partition in places(producer, ["flights"], [b"k"] * 400)}
    assert found == (set(range(12)) if keys == "global" else {0, 3, 6, 9})


@pytest.mark.parametrize("name", HASHING)
@pytest.mark.parametrize("keys", ["local-mod", "local-hrw"])
def test_local_modes_hash_with_the_partitioners_hash(
    mock: MockCluster,
    keys: str,
    name: str,
    hot: Any,
) -> None:
    """In both paths the same; `local-mod` is the bare client's choice among as many partitions."""
    mock.create("flights", [1, 2, 3] * 7)
    mock.create("of-7", [1] * 7)
    ours = places(AZAwareProducer(config(mock, partitioner=name), keys=keys), ["flights"], [*KEYS])
    assert {partition for _, _, partition in ours} == set(range(0, 21, 3))
    if keys == "local-mod":
        bare = places(Producer(config(mock, partitioner=name)), ["of-7"], [*KEYS])
        assert [(key, (place or 0) // 3) for _, key, place in ours] == [(key, place) for _, key, place in bare]
    assert hot is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"topic.partitioner": "fnv1a"},
        {"default.topic.config": {"partitioner": "fnv1a"}},
        {"partitioner": " fnv1a"},
        {"partitioner": "fnv1a", "default.topic.config": {"partitioner": "consistent"}},
        {"partitioner": "fnv1a", "topic.partitioner": "consistent"},
        {"topic.partitioner": "consistent", "partitioner": "fnv1a"},
    ],
    ids=str,
)
def test_the_partitioner_is_found_wherever_the_bare_client_reads_it(
    mock: MockCluster, settings: Mapping[str, Any]
) -> None:
    """The client has several names for it, and an order among them."""
    names = topics(mock)
    ours = places(AZAwareProducer(config(mock, **settings)), names, [*KEYS])
    assert ours == places(Producer(config(mock, **settings)), names, [*KEYS])


def test_a_configuration_without_a_partitioner_is_reported_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default of librdkafka maps keys otherwise than Java's, so the bare client's keys move: not in silence."""
    monkeypatch.setattr(configured_policy, "_logged", False)
    settings = {"bootstrap.servers": "127.0.0.1:1", "client.rack": "az-a", "log_level": 0}
    for keys, more in (
        ("local-hrw", {}),
        ("global", {"partitioner": "consistent_random"}),
        ("global", {}),
        ("global", {}),
    ):
        AZAwareProducer({**settings, **more}, keys=keys).close()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "producer"]
    assert "'partitioner': 'consistent_random'" in line
    assert "murmur2_random" in line


@pytest.mark.parametrize("name", HASHING)
def test_the_asyncio_client_honours_the_partitioner(mock: MockCluster, name: str) -> None:
    """An empty key counts as none for some, and records without a key have a place of their own for others."""
    names = topics(mock)
    null = [None] if name in NULL_KEYS_ARE_HASHED else []
    keys: list[bytes | None] = [*null, *KEYS] if name == "consistent_random" else [*null, b"", *KEYS]

    async def run() -> list[tuple[str, bytes | None, int | None]]:
        async with AZAwareAIOProducer(config(mock, partitioner=name)) as producer:
            futures = [await producer.produce(topic, b"v", key) for topic in names for key in keys]
            await producer.flush()
            messages = await asyncio.gather(*futures)
            return sorted(((one.topic(), one.key(), one.partition()) for one in messages), key=str)

    assert asyncio.run(run()) == places(Producer(config(mock, partitioner=name)), names, keys)
