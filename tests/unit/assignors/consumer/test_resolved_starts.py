"""What is requested before a partition begins."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.resolved_starts import ResolvedStarts

Answer = Callable[[list[KafkaPartition]], list[KafkaPartition]]


class _Client:
    """Stands in for librdkafka's consumer.

    Args:
        answers: one for each request for offsets.
    """

    def __init__(self, *answers: Answer) -> None:
        self._answers = iter(answers)
        self.metadata: list[str] = []
        self.asked: list[list[tuple[str, int]]] = []

    def list_topics(self, topic: str = "all", timeout: float = 0.0) -> SimpleNamespace:
        assert timeout > 0
        self.metadata.append(topic)
        return SimpleNamespace(topics={})

    def offsets_for_times(self, asked: list[KafkaPartition], timeout: float) -> list[KafkaPartition]:
        assert timeout > 0
        self.asked.append([(one.topic, one.partition) for one in asked])
        return next(self._answers)(asked)

    def position(self, asked: list[KafkaPartition]) -> list[KafkaPartition]:
        """No record has come."""
        return asked


def _at_7(asked: list[KafkaPartition]) -> list[KafkaPartition]:
    return [KafkaPartition(one.topic, one.partition, 7) for one in asked]


def _interrupted(_: list[KafkaPartition]) -> list[KafkaPartition]:
    raise KeyboardInterrupt


def test_an_interrupted_begin_requests_the_leaders_again() -> None:
    """An interrupted begin is repeated; without known leaders the first records come half a second later."""
    client: Any = _Client(_interrupted, _at_7)
    starts = ResolvedStarts()
    with pytest.raises(KeyboardInterrupt):
        starts.begin(client, {("t", 0): OFFSET_BEGINNING})
    assert starts.begin(client, {("t", 0): OFFSET_BEGINNING}) == {("t", 0): 7}
    assert client.metadata == ["t", "t"]


def test_a_seek_in_a_partition_without_a_leader_waits_also_after_another_one() -> None:
    """Librdkafka asks for its offset once there is a leader, so the wait of another seek does not count for it."""

    def without_leader(asked: list[KafkaPartition]) -> list[KafkaPartition]:
        return [one for one in _at_7(asked) if one.partition != 1]

    client: Any = _Client(without_leader, without_leader, _at_7, _at_7)
    starts = ResolvedStarts()
    starts.begin(client, {("t", number): OFFSET_BEGINNING for number in range(2)})
    for number in (0, 2):
        starts.continues(client, ("t", number), OFFSET_END)
    for number in (0, 2, 1):
        starts.continues(client, ("t", number), 20)
    late = [("t", 1)]  # twice: librdkafka waits up to half a second before it asks
    assert [sorted(asked) for asked in client.asked[1:]] == [[("t", number) for number in range(3)], late, late]


def test_a_begin_waits_once_if_no_broker_answers() -> None:
    """The request for offsets would wait for the same leaders, a second more."""

    class Silent(_Client):
        def list_topics(self, topic: str = "all", timeout: float = 0.0) -> SimpleNamespace:
            super().list_topics(topic, timeout)
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    client: Any = Silent(_at_7, _at_7)
    starts = ResolvedStarts()
    assert starts.begin(client, {("t", 0): OFFSET_BEGINNING}) == {("t", 0): OFFSET_BEGINNING}
    assert not client.asked
    starts.continues(client, ("t", 0), 20)
    assert client.asked  # librdkafka may have found the leader meanwhile
