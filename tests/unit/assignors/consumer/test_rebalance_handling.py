"""The effects of rebalances on a consumer: callbacks, starting offsets, and revocations."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from assignors import GroupConsumer, MembershipError
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer


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


@pytest.mark.parametrize(("reset", "elsewhere"), [("earliest", list(range(RECORDS))), ("latest", []), ("error", None)])
def test_it_begins_where_the_group_has_committed_and_elsewhere_at_the_reset(
    mock: MockCluster, reset: str, elsewhere: list[int] | None
) -> None:
    """Of three partitions one has an offset; the others begin at an end of their logs, or are errors that say so."""
    before = Consumer({"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "log_level": 0})
    before.commit(offsets=[TopicPartition("t", 1, 20)], asynchronous=False)
    before.close()
    wanted = RECORDS - 20 + 2 * (1 if elsewhere is None else len(elsewhere))
    found: list[Message] = []
    with consumer(mock, **{"auto.offset.reset": reset}) as one:
        one.subscribe(["t"])
        until = time.monotonic() + 30
        while len(found) < wanted and time.monotonic() < until:
            found += one.consume(100, 0.2)
    errors = [error.code() for message in found if (error := message.error()) is not None]
    assert errors == ([KafkaError._AUTO_OFFSET_RESET] * 2 if elsewhere is None else [])
    read_of = offsets([message for message in found if message.error() is None])
    assert read_of == {n: expected for n in range(3) if (expected := list(range(20, RECORDS)) if n == 1 else elsewhere)}


def test_callbacks_that_raise_lose_neither_partitions_nor_the_end(mock: MockCluster) -> None:
    """Poll and close raise a callback's error; assigned partitions are read, and everything is closed."""

    def broken(_: GroupConsumer, partitions: list[TopicPartition]) -> None:
        raise LookupError(len(partitions))

    one = consumer(mock)
    one.subscribe(["t"], on_assign=broken, on_revoke=broken)
    with pytest.raises(LookupError, match="3"):
        read(one, 1)
    assert offsets(read(one, 3 * RECORDS)) == {n: list(range(RECORDS)) for n in range(3)}
    with pytest.raises(LookupError, match="3"):
        one.close()
    with pytest.raises(MembershipError, match="closed"):
        one.poll(0)
    with pytest.raises(RuntimeError, match="closed"):
        one._fetching.client.list_topics(timeout=1)
    one.close()


def test_unassign_belongs_into_a_revocation(mock: MockCluster) -> None:
    """Programs written for confluent-kafka call it there; elsewhere it would part the client from its group."""

    def revoked(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        one.incremental_unassign(partitions)
        one.unassign()
        told.append(len(partitions))

    told: list[int] = []
    with consumer(mock) as one:
        one.subscribe(["t"], on_revoke=revoked)
        read(one, 1)
        with pytest.raises(MembershipError, match="pause"):
            one.unassign()
        with pytest.raises(MembershipError, match="pause"):
            one.incremental_unassign(one.assignment())
    assert told == [3]


def test_what_is_paused_in_on_assign_is_not_delivered_until_it_is_resumed(mock: MockCluster) -> None:
    """A program that is still busy with other records pauses new partitions in its callback."""

    def hold(one: GroupConsumer, partitions: list[TopicPartition]) -> None:
        one.pause(partitions)
        one.resume(partitions[:1])

    with consumer(mock) as one:
        one.subscribe(["t"], on_assign=hold)
        assert offsets(read(one, RECORDS)) == {0: list(range(RECORDS))}
        assert one.poll(0.2) is None
        one.resume(one.assignment())
        assert offsets(read(one, 2 * RECORDS)) == {n: list(range(RECORDS)) for n in (1, 2)}
