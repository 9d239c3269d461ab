"""Positions and costs after a seek, and a client that ends."""

from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Message, TopicPartition

from assignors import GroupConsumer
from assignors.consumer import fetching, record_steps, resolved_starts
from assignors.consumer.read_ahead import key_of_message
from assignors.planner.topics_and_members import TopicPartition as Key
from producer.testing import MockCluster
from tests.records import offsets, read
from tests.unit.assignors.conftest import RECORDS, consumer, end_client


def positions(one: GroupConsumer) -> dict[int, int]:
    """The position of each partition that has one."""
    return {p.partition: p.offset for p in one.position(one.assignment()) if p.offset >= 0}


def test_a_seek_to_a_silent_partition_costs_the_others_nothing(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record was compared with the partitions sought until all of these had delivered: a third of the rate."""
    looked: list[Message] = []

    def look(message: Message) -> Key:
        looked.append(message)
        return key_of_message(message)

    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3 * RECORDS)
        one.seek(TopicPartition("t", 2, OFFSET_END))
        one.seek(TopicPartition("t", 1, 0))
        one.seek(TopicPartition("t", 0, 10))
        assert not positions(one), "none before a record"
        monkeypatch.setattr(fetching, "key_of_message", look)
        found = [*read(one, 30), *read(one, 2 * RECORDS - 10 - 30)]
        assert offsets(found) == {0: list(range(10, RECORDS)), 1: list(range(RECORDS))}
        assert not looked
        assert positions(one) == {0: RECORDS, 1: RECORDS}


def test_a_seek_asks_for_no_other_position(mock: MockCluster) -> None:
    """A program that seeks in each of 2,000 partitions waited for 14 s."""
    asked: list[int] = []

    class Counting:
        """Counts the partitions whose position is asked for."""

        def __init__(self, client: Any) -> None:
            self._client = client

        def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
            """As the client's."""
            asked.append(len(partitions))
            found: list[TopicPartition] = self._client.position(partitions)
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3 * RECORDS)
        client = one._kafka_azimuth.fetching._consumer
        one._kafka_azimuth.fetching._consumer = Counting(client)  # type: ignore[assignment]  # stands in for the client
        for number in range(3):
            one.seek(TopicPartition("t", number, 10))
        one._kafka_azimuth.fetching._consumer = client
        assert asked
        assert max(asked) == 1


def test_a_new_client_keeps_the_positions(mock: MockCluster) -> None:
    """After a fatal error the next commit counts all delivered records, and what was sought begins there."""
    with consumer(mock) as one:
        one.subscribe(["t"])
        read(one, 3 * RECORDS)
        one.seek(TopicPartition("t", 2, OFFSET_END))
        one.seek(TopicPartition("t", 1, 40))
        end_client(one)
        found = read(one, 10)
        assert offsets(found) == {1: list(range(40, RECORDS))}
        assert positions(one) == {0: RECORDS, 1: RECORDS}
        assert one.poll(0.2) is None


def test_librdkafka_may_end_and_is_begun_again(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new client continues with the same partitions, from the first record that was not delivered."""
    monkeypatch.setattr(record_steps, "_READ_AHEAD", 1)
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", 1)
    with consumer(mock) as one:
        one.subscribe(["t"])
        first = read(one, 30)
        end_client(one)
        both = offsets([*first, *read(one, 3 * RECORDS - 30)])
    assert both == {n: list(range(RECORDS)) for n in range(3)}


def test_an_interrupt_while_it_begins_anew_leaves_no_partition_unread(
    mock: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C during the request for leaders, assigned partitions are read, and paused ones stay paused."""

    def interrupted(*_: object) -> None:
        once.undo()
        raise KeyboardInterrupt

    once = pytest.MonkeyPatch()

    monkeypatch.setattr(record_steps, "_READ_AHEAD", 1)  # the rest is fetched after the interrupt
    monkeypatch.setattr(record_steps, "_READ_AHEAD_BATCHES", 1)
    with consumer(mock) as one:
        one.subscribe(["t"])
        first = read(one, 30)
        one.pause([TopicPartition("t", 2)])
        before = len(offsets(first).get(2, []))
        once.setattr(resolved_starts, "ask_for_leaders", interrupted)
        end_client(one)
        with pytest.raises(KeyboardInterrupt):
            one.poll(5.0)
        both = offsets([*first, *read(one, 2 * RECORDS - 30 + before)])
        assert both == {0: list(range(RECORDS)), 1: list(range(RECORDS))} | ({2: list(range(before))} if before else {})
        one.resume([TopicPartition("t", 2)])
        assert offsets(read(one, RECORDS - before)) == {2: list(range(before, RECORDS))}
