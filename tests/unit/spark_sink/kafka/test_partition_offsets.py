"""The partitions that a subscription selects, and connections that are made ahead of the first question."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignors import MembershipError
from spark_sink.errors import FetchError, JoinError, OptionError
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import TopicPartition

THERE = {
    name: SimpleNamespace(partitions=dict.fromkeys(range(2)))
    for name in ("a", "b", "__mine", "__consumer_offsets", "__transaction_state", "__share_group_state")
}


def _selected(monkeypatch: pytest.MonkeyPatch, **option: str) -> set[str]:
    base = {"kafka.bootstrap.servers": "localhost:9", "kafka.group.id": "g"}
    logs = PartitionOffsets(SourceOptions.parse({**base, **option}))
    monkeypatch.setattr(logs, "_admin", SimpleNamespace(list_topics=lambda **_: SimpleNamespace(topics=THERE)))
    found = logs.subscribed()
    assert {one.partition for one in found} <= {0, 1}
    return {one.topic for one in found}


def test_a_pattern_selects_no_internal_topic_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group never assigns them, so a run with Trigger.AvailableNow would wait for them in vain."""
    assert _selected(monkeypatch, subscribePattern=".*") == {"a", "b", "__mine"}


def test_a_name_selects_its_topic_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal topic, too: the group assigns it then."""
    assert _selected(monkeypatch, subscribe="a,__consumer_offsets,absent") == {"a", "__consumer_offsets"}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("kafka.nonsense", "1", 'No such configuration property: "nonsense"'),
        ("kafka.fetch.max.bytes", "x", 'Invalid value for configuration property "fetch.max.bytes"'),
        ("kafka.security.protocol", "tls", 'Invalid value "tls" for configuration property "security.protocol"'),
    ],
)
def test_a_client_property_that_librdkafka_refuses_is_one_sentence(name: str, value: str, says: str) -> None:
    """It ended with librdkafka's own error, which no caller of a batch read or a union expects."""
    options = SourceOptions.parse(
        {"kafka.bootstrap.servers": "localhost:9", "subscribe": "t", name: value}, stream=False
    )
    with pytest.raises(OptionError, match=f"^a client property .* is refused: {says}$"):
        PartitionOffsets(options)


class Logs:
    """Answers when it may, and counts the questions."""

    def __init__(self, may: threading.Event) -> None:
        self.may, self.asked = may, list[str]()

    def ends(self, keys: Iterable[TopicPartition], _timeout_s: float) -> dict[TopicPartition, int]:
        """Each log ends at 7."""
        self.may.wait(10)
        self.asked.append("ends")
        return dict.fromkeys(keys, 7)

    def committed(self, keys: Iterable[TopicPartition], _timeout_s: float) -> dict[TopicPartition, int]:
        """Each offset is 3."""
        self.asked.append("committed")
        return dict.fromkeys(keys, 3)

    def close(self) -> None:
        """Note it."""
        self.asked.append("close")


@pytest.fixture
def offsets(monkeypatch: pytest.MonkeyPatch) -> PartitionOffsets:
    """Of the topics that are there."""
    options = {"kafka.bootstrap.servers": "localhost:9", "kafka.group.id": "g", "subscribe": "a"}
    made = PartitionOffsets(SourceOptions.parse(options))
    monkeypatch.setattr(made, "_admin", SimpleNamespace(list_topics=lambda **_: SimpleNamespace(topics=THERE)))
    return made


def test_a_question_waits_for_the_connection_that_is_made_ahead(
    offsets: PartitionOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kafka-python's consumer may be used by one thread at a time, and a second one would connect again."""
    may, key = threading.Event(), TopicPartition("a", 0)
    made: list[Logs] = []

    def connected() -> Logs:
        made.append(Logs(may))
        return made[-1]

    monkeypatch.setattr(offsets, "_open_logs", connected)
    offsets.connect_ahead()
    offsets.connect_ahead()
    answers: list[dict[TopicPartition, int]] = []
    asking = threading.Thread(target=lambda: answers.append(offsets.ends([key])))
    asking.start()
    asking.join(0.05)
    assert asking.is_alive()
    may.set()
    asking.join(10)
    offsets.connect_ahead()  # connected already
    assert answers == [{key: 7}]
    assert [one.asked for one in made] == [["ends", "committed", "ends"]]
    offsets.close()
    assert made[0].asked[-1] == "close"


def test_a_connection_that_failed_ahead_is_tried_again_by_the_question(
    offsets: PartitionOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error belongs to the caller that waits for an answer."""
    tries: list[int] = []

    def refuse() -> None:
        tries.append(1)
        raise MembershipError("no broker answers")

    monkeypatch.setattr(offsets, "_open_logs", refuse)
    offsets.connect_ahead()
    with pytest.raises(FetchError, match="could not be read: no broker answers"):
        offsets.committed([TopicPartition("a", 0)])
    assert len(tries) == 2


def _rights_checked(offsets: PartitionOffsets, monkeypatch: pytest.MonkeyPatch, **codes: int | None) -> list[list[str]]:
    """Check the rights for topics whose descriptions end with these errors; return the topics of each request."""
    asked: list[list[str]] = []

    def describe_topics(topics: Any, request_timeout: float) -> dict[str, Future[None]]:
        assert request_timeout > 0
        asked.append(topics.topic_names)
        found = {name: Future[None]() for name in topics.topic_names}
        for name, answer in found.items():
            code = codes[name]
            if code is None:
                answer.set_result(None)
            else:
                answer.set_exception(KafkaException(KafkaError(code)))
        return found

    monkeypatch.setattr(offsets, "_admin", SimpleNamespace(describe_topics=describe_topics))
    offsets.check_rights(codes)
    return asked


def test_rights_for_all_topics_are_one_request(offsets: PartitionOffsets, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each would delay a query of 200 topics by seconds; topics to come, and no answer, are no refusal."""
    codes = {"a": None, "b": KafkaError.UNKNOWN_TOPIC_OR_PART, "c": KafkaError._TIMED_OUT}
    assert _rights_checked(offsets, monkeypatch, **codes) == [["a", "b", "c"]]


def test_a_topic_that_is_refused_is_named(offsets: PartitionOffsets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to describe it, a topic looks as if it did not exist."""
    with pytest.raises(JoinError, match="topic 'b' is refused to this user"):
        _rights_checked(offsets, monkeypatch, a=None, b=KafkaError.TOPIC_AUTHORIZATION_FAILED)


def test_a_pattern_asks_for_no_rights(offsets: PartitionOffsets, monkeypatch: pytest.MonkeyPatch) -> None:
    """It selects only topics that the brokers list."""
    assert _rights_checked(offsets, monkeypatch) == []
