"""How large a batch is, and which triggers wait."""

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

import pyarrow as pa
import pytest

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.source.record_sizes import RecordSizes
from spark_sink.source.stream_reader import KafkaGroupReader
from tests.unit.spark_sink.source.trigger_group import A0, A1, B0, BASE, LIMITED, Clock, Group, feed, ranges


@pytest.mark.parametrize(
    ("options", "most"),
    [({"parallelism": "3"}, 3_000_000), ({}, 1_000_000 * len(os.sched_getaffinity(0))), (LIMITED, 50)],
    ids=["by the tasks", "by the cores", "by an option"],
)
def test_the_first_batch_of_a_long_backlog_is_limited(
    monkeypatch: pytest.MonkeyPatch, group: Group, options: dict[str, str], most: int
) -> None:
    """Spark asks the reader for its limit; without one, a new query would read the whole log in one batch."""
    group.last = {A0: 10**12, A1: 10**12}
    reader = KafkaGroupReader(SourceOptions.parse({**BASE, **options}))
    monkeypatch.setattr(reader, "_session", nullcontext(feed(group)))
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert sum(one.records for one in Offset.parse(end)) == most
    assert reader.latestOffset(end, reader.getDefaultReadLimit())["reads"] == end["reads"] == ".* in group 'g'"


def test_a_small_batch_waits_for_more_records_or_for_the_delay(group: Group) -> None:
    """As in Spark's own source: the first trigger never waits, and the delay is counted from the last one that ran."""
    clock = Clock()
    reader = feed(group, clock=clock, minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    first = reader.next_offset(Offset(), 1_000)
    assert ranges(first) == {A0: (0, 10), A1: (0, 10)}
    group.last[A0] = 15
    assert reader.next_offset(first, 1_000) is first, "5 records are too few"
    assert group.offsets == {A0: 10, A1: 10}, "a trigger that waits commits what was read"
    group.last[A1] = 15
    second = reader.next_offset(first, 1_000)
    assert ranges(second) == {A0: (10, 15), A1: (10, 15)}
    group.last[A0] = 16
    clock.now += 59
    assert reader.next_offset(second, 1_000) is second
    clock.now += 1
    third = reader.next_offset(second, 1_000)
    assert ranges(third) == {A0: (15, 16), A1: (15, 15)}


def test_a_start_without_records_does_not_make_the_first_ones_wait(group: Group) -> None:
    """The ends of the logs may not be known yet at the first trigger of a query."""
    group.last = {A0: 0, A1: 0}
    reader = feed(group, minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    first = reader.next_offset(Offset(), 1_000)
    group.last = {A0: 3, A1: 0}
    assert ranges(reader.next_offset(first, 1_000))[A0] == (0, 3)


def test_trigger_once_and_available_now_do_not_wait_for_more_records(group: Group) -> None:
    """Such a run would end without what it was started for."""
    for limit, now in ((None, False), (1_000, True)):
        reader = feed(group, minOffsetsPerTrigger="10")
        first = reader.next_offset(Offset(), 1_000)
        group.last[A0] += 1
        if now:
            reader.stop_at_ends()
        assert reader.next_offset(first, limit) is not first


def test_a_limit_in_bytes_ends_a_batch(group: Group) -> None:
    """Large records make small batches; Trigger.Once reads everything."""

    def read(pieces: Sequence[Range]) -> Iterable[pa.RecordBatch]:
        rows = [{"topic": one.topic, "value": b"v" * 100} for one in pieces]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(headers=False))

    reader = feed(group, sizes=RecordSizes(read, lambda: 0.0), maxBytesPerTrigger="1000")
    first = reader.next_offset(Offset(), 1_000)
    assert ranges(first) == {A0: (0, 5), A1: (0, 5)}
    assert ranges(reader.next_offset(first, None)) == {A0: (5, 10), A1: (5, 10)}


def test_available_now_ends_at_the_ends_of_its_beginning(group: Group) -> None:
    """Also over several batches, and for partitions gained on the way; ones made later are left."""
    group.last[B0] = 4
    reader = feed(group)
    reader.stop_at_ends()
    group.last = {A0: 99, A1: 99, B0: 99, TopicPartition("new", 0): 5}
    first = reader.next_offset(Offset(), 12)
    assert ranges(first) == {A0: (0, 6), A1: (0, 6)}
    group.give(A0, A1, B0, TopicPartition("new", 0))
    second = reader.next_offset(first, None)
    assert ranges(second)[A0] == (6, 10)
    assert ranges(second)[B0] == (0, 4)
    assert ranges(second)[TopicPartition("new", 0)] == (0, 0)
    assert reader.next_offset(second, None) is second


def test_idle_triggers_do_not_spin(group: Group) -> None:
    """Spark asks again after 10 ms when there is nothing new."""
    reader = feed(group)
    offset = reader.next_offset(Offset(), None)
    before = reader._clock()
    for _ in range(10):
        offset = reader.next_offset(offset, None)
    assert reader._clock() - before > 0.85


def test_a_batch_waits_until_the_pauses_are_known(group: Group) -> None:
    """Or a restarted query would read a paused topic, and one with Trigger.Once would read nothing."""
    answers = [None, None, None, {"b"}]
    reader = feed(group, paused=lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    assert ranges(reader.next_offset(Offset(), None)) == {A0: (0, 10), A1: (0, 10)}
