"""A task's reaction to a leader that calls an offset out of range, with brokers that answer from a script."""

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import pairwise
from typing import cast

import numpy as np
import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.errors import DataLossError
from spark_sink.fetch import log_requests, range_reader
from spark_sink.fetch.librdkafka import Messages, NativeConsumer
from spark_sink.fetch.librdkafka_symbols import MESSAGE
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range, TopicPartition

RANGE = Range("t", 0, 644, 700)
OTHER = Range("t", 1, 5, 6)


class Assigned:
    """The calls of the task on its consumer."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Range]]] = []

    def add(self, ranges: Iterable[Range]) -> None:
        """Read these, too."""
        self.calls.append(("add", list(ranges)))

    def remove(self, ranges: Iterable[Range]) -> None:
        """Read these no more."""
        self.calls.append(("remove", list(ranges)))


class Answers:
    """Watermarks, one after the other; the last one for ever."""

    def __init__(self, *logs: tuple[int, int]) -> None:
        self.logs = list(logs)

    def get_watermark_offsets(self, _partition: object, timeout: float) -> tuple[int, int]:
        """The next answer."""
        assert timeout > 0
        return self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]


def task(
    monkeypatch: pytest.MonkeyPatch,
    *logs: tuple[int, int],
    poll_timeout_s: float = 120.0,
    fail_on_data_loss: bool = True,
) -> tuple[range_reader._Task, Assigned]:
    """A task that reads RANGE from brokers with these answers."""
    answers = Answers(*logs)

    @contextlib.contextmanager
    def client(_: FetchSettings) -> Iterator[Answers]:
        yield answers

    monkeypatch.setattr(log_requests, "_client", client)
    monkeypatch.setattr(log_requests, "_BACKOFF_S", 0.01)
    consumer = Assigned()
    settings = FetchSettings(kafka={}, poll_timeout_s=poll_timeout_s, fail_on_data_loss=fail_on_data_loss)
    return range_reader._Task(lambda: cast("NativeConsumer", consumer), [RANGE], settings), consumer


def out_of_range(made: range_reader._Task) -> None:
    """An event from librdkafka."""
    made._handle_event(KafkaError._AUTO_OFFSET_RESET, TopicPartition("t", 0), -1)


def test_a_leader_that_has_not_heard_of_its_successor_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log ends before the successor's offsets; when the successor answers, reading continues at the position."""
    made, consumer = task(monkeypatch, (0, 509), (0, 509), (0, 720))
    out_of_range(made)
    assert consumer.calls == [("remove", [RANGE]), ("add", [RANGE])]


def test_a_log_that_stays_too_short_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says from where to where the log goes."""
    made, consumer = task(monkeypatch, (0, 509), poll_timeout_s=0.1)
    with pytest.raises(DataLossError, match=r"t/0: offset 644 is to be read, but the log holds \[0, 509\)"):
        out_of_range(made)
    assert not consumer.calls


def test_what_retention_took_is_reported_at_once_or_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """If data loss is allowed, reading continues at the log's beginning."""
    made, _ = task(monkeypatch, (650, 720))
    with pytest.raises(DataLossError, match="failOnDataLoss"):
        out_of_range(made)
    made, consumer = task(monkeypatch, (650, 720), fail_on_data_loss=False)
    out_of_range(made)
    assert [(name, [one.begin for one in ranges]) for name, ranges in consumer.calls][-1] == ("add", [650])


@given(offsets=st.lists(st.integers(600, 740), min_size=1, max_size=60, unique=True), cuts=st.sets(st.integers(0, 60)))
def test_a_task_takes_each_offset_of_its_range_once_and_no_other(offsets: list[int], cuts: set[int]) -> None:
    """Whatever librdkafka hands over: records before the range, behind it, and the same ones twice."""
    offsets.sort()
    consumer = Assigned()
    made = range_reader._Task(lambda: cast("NativeConsumer", consumer), [RANGE, OTHER], FetchSettings(kafka={}))
    taken: list[int] = []
    bounds = [0, *sorted(cut for cut in cuts if cut < len(offsets)), len(offsets)]
    for begin, end in pairwise(bounds):
        for part in (offsets[begin:end], offsets[:begin]):  # what came before comes again
            records = np.zeros(len(part), MESSAGE)
            records["offset"] = part
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(range_reader, "topic_name", lambda _: "t")
                topics, wanted = made._select(records)
            assert len(topics) == len(part)
            taken += records["offset"][wanted].tolist()
    assert taken == [offset for offset in offsets if RANGE.begin <= offset < RANGE.end]


class Reads(Assigned):
    """A consumer that reads nothing and knows topic ids."""

    def __init__(self, **ids: str) -> None:
        super().__init__()
        self.ids = ids

    def assign(self, ranges: Iterable[Range]) -> None:
        """Read these."""
        self.calls.append(("assign", list(ranges)))

    def unassign(self) -> None:
        """Read none."""

    def consume(self, _most: int, _wait_s: float) -> Messages:
        """The end of the log, as an event."""
        return Messages(np.ones(1, np.uint64))

    def topic_ids(self, topics: Iterable[str], _timeout_s: float) -> dict[str, str]:
        """Answer for the topics that have an id."""
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}


@pytest.mark.parametrize(
    ("planned", "now", "refused"),
    [("cluster/a/b", "a/b", False), ("cluster/a/b", "c/d", True), ("", "c/d", False), ("cluster/a/b", "", False)],
    ids=["same", "recreated", "unknown at the plan", "unknown now"],
)
def test_a_topic_that_is_recreated_while_it_is_read_fails_the_task(
    monkeypatch: pytest.MonkeyPatch, planned: str, now: str, *, refused: bool
) -> None:
    """Its new records at the old offsets would be committed among the old ones."""
    consumer = Reads(**({"t": now} if now else {}))
    made = range_reader._Task(
        lambda: cast("NativeConsumer", consumer), [RANGE], FetchSettings(kafka={}), {"t": planned} if planned else {}
    )

    def take(_addresses: object) -> list[object]:
        made._progress.advance(RANGE.key, RANGE.end)
        return []

    monkeypatch.setattr(made, "_take", take)
    monkeypatch.setattr(Messages, "__exit__", lambda *_: None)
    with pytest.raises(DataLossError, match=r"t: .* recreated while it was read") if refused else nullcontext():
        assert list(made.batches()) == []
