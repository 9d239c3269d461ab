"""The end to which a compacted topic is read, with a Kafka that is a list."""

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from assignors.clients import CompactedFeed, TableTopic, compacted_topic
from assignors.clients.compacted_topic import CompactedPublisher
from assignors.errors import AssignorError
from producer.testing import MockCluster
from tests.silent_broker import silence_used_broker
from tests.waiting import wait_until

COMMITTED, WRITTEN = 3, 5


class Stable:
    """A consumer of a log whose last records belong to a transaction that is still open."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.visible = WRITTEN if config.get("isolation.level") == "read_uncommitted" else COMMITTED
        self.at = 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        """One partition."""
        assert timeout > 0
        return SimpleNamespace(cluster_id="c", topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, _partition: object, timeout: float) -> tuple[int, int]:
        """As brokers answer at this level of isolation."""
        assert timeout > 0
        return 0, self.visible

    def incremental_assign(self, _partitions: object) -> None:
        """Begins at the first record."""

    def poll(self, _timeout: float) -> Any:
        """The next visible record, the end once, then nothing."""
        self.at += 1
        if self.at > self.visible + 1:
            return None
        end = KafkaError(KafkaError._PARTITION_EOF) if self.at > self.visible else None
        place = {"partition": lambda: 0, "offset": lambda: self.at - 1}
        return SimpleNamespace(error=lambda: end, key=lambda: b"k", value=lambda: b"%d" % self.at, **place)

    def close(self) -> None:
        """Nothing to close."""


def held(*, transactions: bool) -> TableTopic[bytes, bytes]:
    """A topic whose keys and values are themselves."""
    return TableTopic(
        noun="topic",
        client="c",
        key=lambda key: key,
        record=lambda value: value,
        failure=AssignorError,
        refusal=AssignorError,
        transactions=transactions,
    )


def test_the_end_of_a_topic_with_transactions_is_behind_the_open_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Committed records behind an open transaction of another writer are not visible yet, so their end is not read."""
    monkeypatch.setattr(compacted_topic, "Consumer", Stable)
    with CompactedFeed({}, "t", held(transactions=True)) as feed, pytest.raises(AssignorError, match="not read to its"):
        feed.refresh(1.0, to_end=True)
    with CompactedFeed({}, "t", held(transactions=False)) as feed:
        feed.refresh(1.0, to_end=True)


class Recreated:
    """A consumer of a topic that can be deleted and created again; a list is its log."""

    def __init__(self, _config: dict[str, Any]) -> None:
        self.log: list[tuple[bytes, bytes]] | None = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
        self.at: int | None = None
        self.partitions = 1
        self.answers = True  # whether the ends can be asked for
        self.stays = False  # whether a position behind the end is not noticed
        self.unheard = 0  # answers of a leader that has not yet heard of the topic
        self.code = KafkaError.UNKNOWN_TOPIC_OR_PART

    def list_topics(self, topic: str, timeout: float) -> Any:
        """The partitions, or none."""
        assert timeout > 0
        known = dict.fromkeys(range(self.partitions))
        error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if self.log is None else None
        return SimpleNamespace(cluster_id="c", topics={topic: SimpleNamespace(error=error, partitions=known)})

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        """As brokers answer; all records are in the first partition."""
        assert timeout > 0
        if self.log is None or not self.answers or partition.partition >= self.partitions:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        self.unheard -= 1
        if self.unheard >= 0:
            raise KafkaException(KafkaError(self.code))
        return 0, 0 if partition.partition else len(self.log)

    def incremental_assign(self, _partitions: object) -> None:
        """Begins at the first record."""
        self.at = 0

    def incremental_unassign(self, _partitions: object) -> None:
        """Reads nothing."""
        self.at = None

    def poll(self, _timeout: float) -> Any:
        """The next record; past the end of a shorter log it starts at the first one, as with auto.offset.reset."""
        if self.log is None or self.at is None or self.at == len(self.log) or (self.stays and self.at > len(self.log)):
            return None
        self.at = 0 if self.at > len(self.log) else self.at
        key, value = self.log[self.at]
        self.at += 1
        at = self.at - 1
        return SimpleNamespace(
            error=lambda: None, key=lambda: key, value=lambda: value, partition=lambda: 0, offset=lambda: at
        )

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def recreated(monkeypatch: pytest.MonkeyPatch) -> tuple[CompactedFeed[bytes, bytes], Recreated]:
    """A feed that has read its topic, and its consumer."""
    monkeypatch.setattr(compacted_topic, "Consumer", Recreated)
    feed = CompactedFeed({}, "t", held(transactions=False))
    feed.refresh(1.0)
    assert feed.records == {b"a": b"3", b"b": b"2"}
    consumer: Any = feed._consumer
    return feed, consumer


@pytest.mark.parametrize("to_end", [False, True])
def test_records_of_a_topic_that_was_made_again_are_forgotten(
    recreated: tuple[CompactedFeed[bytes, bytes], Recreated], *, to_end: bool
) -> None:
    """Who starts later does not know them: agents would compute with different numbers for ever."""
    feed, consumer = recreated
    consumer.log = [(b"c", b"4")]
    assert feed.refresh(1.0, to_end=to_end)
    assert feed.records == {b"c": b"4"}
    consumer.log.append((b"c", b"5"))
    feed.refresh(1.0, to_end=to_end)
    assert feed.records == {b"c": b"5"}


def test_an_end_before_what_was_read_is_noticed_without_a_record(
    recreated: tuple[CompactedFeed[bytes, bytes], Recreated],
) -> None:
    """A new topic without records is no reason to keep those of the old one."""
    feed, consumer = recreated
    consumer.log, consumer.stays = [(b"c", b"4")], True
    assert not feed.refresh(1.0)
    assert feed.refresh(1.0, to_end=True)
    assert feed.records == {b"c": b"4"}


def test_a_topic_that_is_made_again_with_fewer_partitions_is_read(
    recreated: tuple[CompactedFeed[bytes, bytes], Recreated],
) -> None:
    """Questions about partitions that it lacks would fail until a restart."""
    feed, consumer = recreated
    consumer.partitions = 3
    with contextlib.suppress(AssignorError):  # this consumer has no events of empty partitions
        feed.refresh(1.0)
    consumer.partitions, consumer.log = 1, [(b"c", b"4")]
    assert feed.refresh(1.0, to_end=True)
    assert feed.records == {b"c": b"4"}


def test_no_records_are_not_taken_for_the_topic_while_its_ends_are_unknown(
    recreated: tuple[CompactedFeed[bytes, bytes], Recreated], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents would drop all numbers, and take their configuration for some seconds."""
    feed, consumer = recreated
    consumer.log, consumer.answers = [(b"c", b"4")], False
    with pytest.raises(AssignorError, match="its end cannot be asked for"):
        feed.refresh(1.0)
    consumer.answers = True
    with monkeypatch.context() as slow:
        slow.setattr(consumer, "poll", lambda _: None)
        with pytest.raises(AssignorError, match="not read to its end"):
            feed.refresh(1.0)
    feed.refresh(1.0)
    assert feed.records == {b"c": b"4"}


@pytest.mark.parametrize(
    "code",
    [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION],
)
def test_a_leader_that_has_not_yet_heard_of_a_new_topic_is_asked_again(
    recreated: tuple[CompactedFeed[bytes, bytes], Recreated], code: int
) -> None:
    """A program that has just created the topic would end; one that stays unknown is an error in the given time."""
    feed, consumer = recreated
    consumer.code = code
    consumer.log.append((b"c", b"4"))  # type: ignore[union-attr]  # a log here
    consumer.unheard = 2
    assert feed.refresh(1.0, to_end=True)
    assert feed.records == {b"a": b"3", b"b": b"2", b"c": b"4"}
    consumer.unheard = 10_000
    with pytest.raises(AssignorError, match="its end cannot be asked for"):
        feed.refresh(0.3, to_end=True)


def test_a_record_that_the_client_refuses_is_the_failure_of_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that has noticed the deletion refuses at once, and its error would end the program."""

    class Refusing:
        """A producer."""

        def __init__(self, _config: dict[str, Any]) -> None:
            """Made."""

        def produce(self, *_: object, **__: object) -> None:
            """Refuses."""
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC))

    monkeypatch.setattr(compacted_topic, "Producer", Refusing)
    monkeypatch.setattr(compacted_topic, "make_compacted_topic", lambda *_: None)
    with pytest.raises(AssignorError, match=r"the number did not reach topic 't': .*UNKNOWN_TOPIC"):
        CompactedPublisher({}, "t", held(transactions=False)).write(b"k", b"v", "the number")


def test_records_stay_until_a_topic_counts_as_deleted(
    recreated: tuple[CompactedFeed[bytes, bytes], Recreated], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just started lists too few. The evaluator needs the end, and gets an error with the reason."""
    feed, consumer = recreated
    consumer.log, now_s = None, 100.0
    monkeypatch.setattr("assignors.clients.compacted_topic.time.monotonic", lambda: now_s)
    for now_s in (100.0, 109.0):
        feed.refresh(1.0)
        assert feed.records, now_s
        assert not feed.deleted
        with pytest.raises(AssignorError, match=r"topic 't': the brokers list no such topic; it was there before"):
            feed.refresh(1.0, to_end=True)
    now_s = 110.0
    assert feed.refresh(1.0, to_end=True)
    assert feed.deleted
    assert not feed.records
    assert not feed.refresh(1.0)
    assert feed.deleted
    consumer.log = [(b"c", b"4")]
    assert feed.refresh(1.0)
    assert feed.records == {b"c": b"4"}
    assert not feed.deleted


@pytest.mark.slow
def test_a_topic_is_read_again_while_one_broker_is_silent() -> None:
    """For a minute no evaluator would decide, and no agent that has just started would know the pauses."""
    with MockCluster() as cluster:
        cluster.create("table", [1])
        first = cluster.bootstrap_servers.split(",")[0]
        with CompactedFeed({"bootstrap.servers": first}, "table", held(transactions=False)) as feed:
            feed.refresh(10.0)
            silence_used_broker(cluster, feed._consumer)
            wait_until(lambda: refreshed(feed), 30, "an answer of another broker")


def refreshed(feed: CompactedFeed[bytes, bytes]) -> bool:
    """Whether a broker answers."""
    try:
        feed.refresh(2.0)
    except AssignorError:
        return False
    return True
