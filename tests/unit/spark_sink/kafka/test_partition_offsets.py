"""The partitions that a subscription selects."""

from types import SimpleNamespace

import pytest

from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.source_options import SourceOptions

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
