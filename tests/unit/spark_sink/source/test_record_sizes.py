"""A limit in bytes needs the size of records, which offsets do not show."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from spark_sink.errors import FetchError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.ranges.batch_offset import Range, TopicPartition
from spark_sink.source.record_sizes import RecordSizes

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Log:
    """Records of a size by topic."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.asked: list[Sequence[Range]] = []
        self.fails = False
        self.now = 0.0

    def read(self, pieces: Sequence[Range]) -> Iterable[pa.RecordBatch]:
        """Answer with records whose key has one byte."""
        self.asked.append(pieces)
        if self.fails:
            raise FetchError("no leader")
        for one in pieces:
            row = {"topic": one.topic, "key": b"k", "value": b"v" * (self.sizes[one.topic] - 1)}
            yield pa.RecordBatch.from_pylist([row] * one.records, schema=arrow_schema(headers=False))


def test_sizes_are_measured_where_the_next_batch_begins_and_once_a_minute() -> None:
    """A sample at each trigger would cost a request for each topic."""
    log = Log(a=10, b=1_000)
    sizes = RecordSizes(log.read, lambda: log.now)
    positions, backlog = {A0: 5, A1: 7, B0: 9}, {A0: 3, A1: 500, B0: 0}
    assert sizes.look(positions, backlog) == {"a": 10.0}, "a topic without a backlog is not read"
    assert log.asked == [[Range("a", 1, 7, 57), Range("a", 0, 5, 8)]]
    log.sizes["a"], log.now = 20, 59.0
    assert sizes.look(positions, backlog) == {"a": 10.0}
    assert len(log.asked) == 1
    log.now = 60.0
    assert sizes.look(positions, {**backlog, B0: 2}) == {"a": 20.0, "b": 1_000.0}


def test_a_sample_that_cannot_be_read_does_not_stop_the_query() -> None:
    """The tasks find the same error, and they know whether it lasts; until then the last size counts."""
    log = Log(a=10)
    log.fails = True
    sizes = RecordSizes(log.read, lambda: log.now)
    assert sizes.look({A0: 0}, {A0: 5}) == {"a": 1_000.0}
    log.fails, log.now = False, 60.0
    assert sizes.look({A0: 0}, {A0: 5}) == {"a": 10.0}
    log.fails, log.now = True, 120.0
    assert sizes.look({A0: 0}, {A0: 5}) == {"a": 10.0}


def test_empty_records_have_a_size() -> None:
    """A size of 0 would be no limit."""
    log = Log(a=1)

    def read(pieces: Sequence[Range]) -> Iterable[pa.RecordBatch]:
        rows = [{"topic": one.topic} for one in pieces]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(headers=False))

    assert RecordSizes(read, lambda: log.now).look({A0: 0}, {A0: 5}) == {"a": 1.0}
