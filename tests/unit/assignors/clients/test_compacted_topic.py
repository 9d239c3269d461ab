"""The end to which a compacted topic is read, with a Kafka that is a list."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from assignors.clients import CompactedFeed, TableTopic, compacted_topic
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

    def list_topics(self, topic: str, timeout: float) -> Any:  # noqa: ANN401 -- as the client
        """One partition."""
        assert timeout > 0
        return SimpleNamespace(cluster_id="c", topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, _partition: object, timeout: float) -> tuple[int, int]:
        """As brokers answer at this level of isolation."""
        assert timeout > 0
        return 0, self.visible

    def incremental_assign(self, _partitions: object) -> None:
        """Begins at the first record."""

    def poll(self, _timeout: float) -> Any:  # noqa: ANN401 -- as the client
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
