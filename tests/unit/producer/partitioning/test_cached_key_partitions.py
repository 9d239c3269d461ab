"""Known keys of the interpreted hot path: right after each change of the table, bounded, gone where none repeats."""

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import murmur2

from producer.decisions.partitioner_names import ClientPartitioner
from producer.decisions.producer_settings import KeyMode, ZonePolicy
from producer.decisions.rendezvous_slots import hrw_table
from producer.decisions.sticky import chance
from producer.partitioning import produce_interpreted
from producer.partitioning.cached_key_partitions import KNOWN, LONGEST, WORTH, KnownKeys
from producer.partitioning.topics_in_use import TopicsInUse

RACKS = {1: "az-a", 2: "az-b", 3: "az-c"}
KEYS = [b"key %d" % number for number in range(500)]
Send = Callable[[TopicsInUse, bytes | None], int]


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Send:
    """Run the interpreted `produce` without a client, and return the record's partition."""
    sent: list[int] = []

    def queue(_self: object, _topic: str, _value: bytes, _key: bytes | None, partition: int) -> None:
        sent.append(partition)

    monkeypatch.setattr(produce_interpreted, "_send", queue)

    def run(topics: TopicsInUse, key: bytes | None) -> int:
        producer = SimpleNamespace(
            _kafka_azimuth_destinations=topics.destinations, _kafka_azimuth=SimpleNamespace(topics_in_use=topics)
        )
        produce_interpreted.produce(producer, "t", b"value", key)
        return sent[-1]

    return run


def in_use(
    mode: KeyMode = KeyMode.GLOBAL, partitioner: ClientPartitioner = ClientPartitioner.MURMUR2_RANDOM
) -> TopicsInUse:
    """Topics of a producer in az-a."""
    policy = ZonePolicy(rack="az-a", keys=mode, batch_bytes=100, hold_s=0.0, partitioner=partitioner)
    return TopicsInUse(policy, chance(3))


def known(topics: TopicsInUse) -> KnownKeys:
    """Return the known keys of the topic."""
    found = topics.destinations["t"].known
    assert found is not None
    return found


@pytest.mark.parametrize("mode", [KeyMode.GLOBAL, KeyMode.LOCAL_MOD, KeyMode.LOCAL_HRW])
@pytest.mark.parametrize(
    ("leaders", "racks"),
    [
        ([2, 2, 3, 1, 2, 3], RACKS),
        ([1, 2, 3, 1, 2, 3, 1, 2, 3], RACKS),
        ([1, 2, 3, 1], RACKS),
        ([1, 2, 3, 1, 2, 3], {1: "az-b", 2: "az-a", 3: "az-c"}),
        ([2, 2, 3, 3, 2, 3], RACKS),
    ],
    ids=["leader moves", "partitions added", "recreated smaller", "zones of brokers change", "zone leads none"],
)
def test_known_keys_follow_every_change_of_the_table(
    send: Send, mode: KeyMode, leaders: list[int], racks: dict[int, str]
) -> None:
    """A key that was seen before the change goes where the new table says: its old partition may lead elsewhere."""
    topics = in_use(mode)
    for now, (led, zones) in enumerate([([1, 2, 3, 1, 2, 3], RACKS), (leaders, racks), ([1, 2, 3, 1, 2, 3], RACKS)]):
        topics.update("t", led, zones, float(now))
        topics.update("t", led, zones, now + 0.5)
        fresh = TopicsInUse(topics.policy, chance(3)).update("t", led, zones, 0.0)
        for _ in range(2):
            assert [send(topics, key) for key in KEYS] == [fresh.destinations.keyed_partition(key) for key in KEYS]


def test_a_switch_of_records_without_a_key_keeps_the_known_keys(send: Send) -> None:
    """Such a switch comes every batch, and changes no table."""
    topics = in_use(KeyMode.LOCAL_HRW)
    topics.update("t", [1, 2, 3] * 4, RACKS, 0.0)
    for key in KEYS:
        send(topics, key)
    before = topics.destinations["t"]
    for _ in range(100):
        send(topics, None)
    assert topics.destinations["t"] is not before
    assert known(topics) is before.known
    assert len(known(topics)) == len(KEYS)


def test_a_repeated_key_is_hashed_once() -> None:
    """That is what known keys are for."""
    hashed: list[bytes] = []
    keys = KnownKeys(lambda key, slots: hashed.append(key) or murmur2(key, slots), range(6), lambda: 0)  # type: ignore[func-returns-value]  # None is false
    assert keys.learn(b"k") == keys.get(b"k", None) == murmur2(b"k", 6)
    assert hashed == [b"k"]


def test_keys_that_do_not_repeat_are_no_longer_looked_up(send: Send) -> None:
    """After one fill they cost what they cost without known keys, and take no memory."""
    topics = in_use()
    topics.update("t", [1, 2, 3] * 2, RACKS, 0.0)
    for number in range(KNOWN + 2):
        send(topics, b"%d" % number)
    destinations = topics.destinations["t"]
    assert destinations.keyed_way is not None
    assert destinations.keyed_way[0] is murmur2
    assert len(known(topics)) == 0
    topics.advance("t", destinations)  # the next run of records without a key does not begin to look again
    send(topics, b"another")
    assert topics.destinations["t"].keyed_way == destinations.keyed_way


def test_keys_that_repeat_are_looked_up_for_ever_in_bounded_memory(send: Send) -> None:
    """The keys of a long-lived producer change slowly: its dictionary begins again, and never outgrows its bound."""
    topics = in_use()
    topics.update("t", [1, 2, 3] * 2, RACKS, 0.0)
    for number in range(3 * KNOWN):
        for _ in range(WORTH + 1):
            assert send(topics, b"%d" % number) == murmur2(b"%d" % number, 6)
        assert len(known(topics)) <= KNOWN
    assert known(topics).pays


def test_long_keys_are_not_kept(send: Send) -> None:
    """A key may have a megabyte."""
    topics = in_use()
    topics.update("t", [1, 2, 3] * 2, RACKS, 0.0)
    long = bytes(LONGEST + 1)
    assert send(topics, long) == send(topics, long) == murmur2(long, 6)
    assert len(known(topics)) == 0
    send(topics, bytes(LONGEST))
    assert len(known(topics)) == 1


@pytest.mark.parametrize("mode", [KeyMode.GLOBAL, KeyMode.LOCAL_MOD, KeyMode.LOCAL_HRW])
def test_a_partitioner_that_draws_keeps_no_key(send: Send, mode: KeyMode) -> None:
    """Records of one key spread under `random`, as with the bare client."""
    topics = in_use(mode, ClientPartitioner.RANDOM)
    topics.update("t", [1, 2, 1] * 2, RACKS, 0.0)
    assert len({send(topics, b"k") for _ in range(200)}) > 1
    assert topics.destinations["t"].known is None


def test_threads_that_fill_the_last_place_together_begin_again_once() -> None:
    """Otherwise the second one would see no record since then, and looking would end for good."""
    others: list[threading.Thread] = []

    def records() -> int:
        if keys and not others:
            others.append(threading.Thread(target=keys.learn, args=(b"two",)))
            others[0].start()
            others[0].join(0.2)  # it cannot end yet
        return WORTH * KNOWN * len(others)

    keys: KnownKeys | None = None
    keys = KnownKeys(murmur2, hrw_table(6, (0, 3)), records)
    for number in range(KNOWN):
        keys.learn(b"%d" % number)
    keys.learn(b"one")
    others[0].join()
    assert keys.pays
    assert len(keys) == 2
