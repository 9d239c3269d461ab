"""The consumer against a cluster inside this process: its interface, and what it never delivers."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, Producer, TopicPartition

from assignors import GroupConsumer, HRWAssignor, MembershipError, NotOwnedError, Ownership
from producer.testing import MockCluster

RECORDS = 50


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers, and a topic of three partitions with records that are numbered."""
    with MockCluster() as made:
        made.create("t", [1, 2, 3])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS * 3):
            producer.produce("t", str(number // 3).encode(), partition=number % 3)
        assert producer.flush(20) == 0
        yield made


def consumer(mock: MockCluster, **more: Any) -> GroupConsumer:  # noqa: ANN401 - settings
    """A consumer of that topic's group, which commits nothing by itself."""
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 6000,
        "log_level": 0,
        **more,
    }
    return GroupConsumer(config, assignors=[HRWAssignor(agent="a")], member={"api_version": (2, 0)})


def read(one: GroupConsumer, count: int, timeout_s: float = 20.0) -> list[Message]:
    """So many records."""
    found: list[Message] = []
    until = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} records"
        found += one.consume(count - len(found), 0.2)
    assert not [m.error() for m in found if m.error() is not None]
    return found


def offsets(messages: list[Message]) -> dict[int, list[int]]:
    """Offsets of each partition in the order of delivery."""
    found: dict[int, list[int]] = {}
    for one in messages:
        found.setdefault(one.partition() or 0, []).append(one.offset() or 0)
    return found


def test_the_whole_interface_on_one_way(mock: MockCluster) -> None:
    """Subscribe, poll, position, pause, seek, commit and come back: as confluent_kafka.Consumer does it."""
    told: list[tuple[str, list[int]]] = []
    commits: list[tuple[Exception | None, list[TopicPartition]]] = []

    def tell(event: str) -> Any:  # noqa: ANN401 - a callback
        return lambda _, partitions: told.append((event, [p.partition for p in partitions]))

    with consumer(mock, on_commit=lambda error, partitions: commits.append((error, partitions))) as one:
        one.subscribe(["t"], on_assign=tell("assign"), on_revoke=tell("revoke"))
        assert offsets(read(one, 3 * RECORDS)) == {n: list(range(RECORDS)) for n in range(3)}
        assert one.poll(0) is None
        assert [p.partition for p in one.assignment()] == [0, 1, 2]
        assert {p.offset for p in one.position(one.assignment())} == {RECORDS}
        one.pause([TopicPartition("t", 1)])
        one.seek(TopicPartition("t", 1, 40))
        one.seek(TopicPartition("t", 2, 48))
        assert [p.offset for p in one.position(one.assignment())] == [RECORDS, 40, 48]
        assert offsets(read(one, 2)) == {2: [48, 49]}
        assert one.poll(0.2) is None
        one.resume([TopicPartition("t", 1)])
        assert offsets(read(one, 10)) == {1: list(range(40, 50))}
        assert one.commit(asynchronous=False) is not None
        one.commit(offsets=[TopicPartition("t", 0, 7)])
        one.commit(offsets=[TopicPartition("u", 0, 7)])
        with pytest.raises(NotOwnedError, match="'u' partition 0"):
            one.commit(offsets=[TopicPartition("u", 0, 7)], asynchronous=False)
        assert [p.offset for p in one.committed([*one.assignment(), TopicPartition("u", 0)])] == [
            7,
            RECORDS,
            RECORDS,
            OFFSET_INVALID,
        ]
        one.poll(0)
        assert [type(error) for error, _ in commits] == [type(None), NotOwnedError]
    assert told == [("assign", [0, 1, 2]), ("revoke", [0, 1, 2])]
    with pytest.raises(MembershipError, match="closed"):
        one.poll(0)


def test_a_callback_says_where_to_begin_and_polls_nothing(mock: MockCluster) -> None:
    """Offsets kept elsewhere are given in on_assign; a poll in there would wait for itself."""
    refused: list[Exception] = []

    def begin(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = 45
        one.assign(partitions[:2])
        one.seek(partitions[2])
        try:
            one.poll(0)
        except MembershipError as error:
            refused.append(error)

    with consumer(mock) as one:
        one.subscribe(["^t"], on_assign=begin)
        assert offsets(read(one, 15)) == {n: list(range(45, 50)) for n in range(3)}
        assert len(refused) == 1
        with pytest.raises(MembershipError, match="the group assigns"):
            one.assign([TopicPartition("t", 0, 1)])


def test_nothing_is_delivered_that_is_not_owned(mock: MockCluster) -> None:
    """A program that was too slow for its group: fetched records of partitions that are another's stay here."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3)
        member = one._member
        assert member is not None
        member._cell.change(Ownership.outside)
        assert one._fetching.take(1000, 1.0, member.ownership) == []


def test_fetched_records_are_dropped_with_their_partition(mock: MockCluster) -> None:
    """Records of before a removal do not come after it, although librdkafka had them in its queue."""
    owned = Ownership().plus([("t", n) for n in range(3)], 1)
    with consumer(mock) as one:
        fetching = one._fetching
        fetching.add(dict.fromkeys([("t", 0), ("t", 1)], 0))
        until = time.monotonic() + 20
        while not fetching.take(1, 0.1, lambda: owned):
            assert time.monotonic() < until
        fetching.remove([("t", 0)])
        fetching.add({("t", 0): 30})
        found: list[Message] = []
        while len(offsets(found).get(0, ())) < 20:
            assert time.monotonic() < until
            found += fetching.take(1000, 0.1, lambda: owned)
        assert offsets(found)[0] == list(range(30, 50))


def test_librdkafka_may_end_and_is_begun_again(mock: MockCluster) -> None:
    """Its end is not the program's: the same partitions, from the first record that was not delivered."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        first = read(one, 30)
        broken = one._fetching._consumer

        class Ended:
            """A consumer that has failed for good."""

            def consume(self, *_: object) -> list[Message]:
                raise KafkaException(KafkaError(KafkaError._FATAL))

            def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the consumer's
                return getattr(broken, name)

        one._fetching._consumer = Ended()  # type: ignore[assignment]  # stands in for the client
        both = offsets([*first, *read(one, 3 * RECORDS - 30)])
    assert both == {n: list(range(RECORDS)) for n in range(3)}


def test_without_a_subscription_there_is_nothing_to_poll(mock: MockCluster) -> None:
    """An error instead of an endless wait."""
    with consumer(mock) as one, pytest.raises(MembershipError, match="subscribe"):
        one.poll(0)
