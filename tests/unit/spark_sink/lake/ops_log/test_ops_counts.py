"""The counts of an ops log: sums, bounded, each in one row."""

import random
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.ops_log.ops_counts import OTHERS, OpsCounts, Written, record_bytes
from spark_sink.ranges.batch_offset import TopicPartition


def test_each_count_is_in_one_row_of_its_topic() -> None:
    """Two commits of a topic are added up, and the next call begins at 0, where this one ended."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    counts = OpsCounts(clock=lambda: now)
    counts.wrote("home", "/lake/x", {"x": Written(5, 1, 100), "idle": Written(0, 0, 0)})
    counts.wrote("home", "/lake/x", {"x": Written(2, 0, 30)})
    counts.failed("home", {"x"}, ValueError("no room"))
    began, now = now, now + timedelta(seconds=60)
    assert counts.take() == [
        {
            "began_at": began,
            "ended_at": now,
            "source": "home",
            "topic": "x",
            "table_uri": "/lake/x",
            "batches": 2,
            "rows": 7,
            "quarantined": 1,
            "bytes": 130,
            "errors": 1,
            "last_error": "no room",
        }
    ]
    began, now = now, now + timedelta(seconds=60)
    assert counts.take() == []
    counts.failed(None, (), "the broker is away")
    (row,) = counts.take()
    assert (row["topic"], row["table_uri"], row["errors"]) == (None, None, 1)


def test_the_memory_is_bounded_and_no_row_is_left_out() -> None:
    """A pattern may match any number of topics while the table refuses, and an error may be a megabyte long."""
    counts = OpsCounts(most=3)
    for number in range(20):
        counts.wrote("home", "/lake", {f"t{number}": Written(1, 0, 10)})
        counts.failed("home", {f"t{number}"}, "x" * 1_000_000)
    rows = counts.take()
    assert [row["topic"] for row in rows] == ["t0", "t1", "t2", OTHERS]
    assert sum(row["rows"] for row in rows) == 20
    assert sum(row["errors"] for row in rows) == 20
    assert max(len(row["last_error"]) for row in rows) <= 500


def test_an_error_shows_no_secret() -> None:
    """More people may read a table of the lake than the log of a process."""
    counts = OpsCounts(lambda text: text.replace("hunter2", "***"))
    counts.failed(None, (), "s3://key:hunter2@lake refused")
    assert counts.take()[0]["last_error"] == "s3://key:***@lake refused"


def test_no_count_is_lost_between_threads() -> None:
    """Readers of several clusters count while the writer takes."""
    counts, taken, done = OpsCounts(), Counter[str](), threading.Event()

    def count() -> None:
        for _ in range(2_000):
            counts.wrote("home", "/lake", {"x": Written(1, 0, 1)})

    def take() -> None:
        while not done.is_set():
            taken.update({"rows": sum(row["rows"] for row in counts.take())})

    taker = threading.Thread(target=take)
    counters = [threading.Thread(target=count) for _ in range(4)]
    for one in (taker, *counters):
        one.start()
    for one in counters:
        one.join()
    done.set()
    taker.join()
    taken.update({"rows": sum(row["rows"] for row in counts.take())})
    assert taken["rows"] == 8_000


@pytest.mark.parametrize("seed", range(3))
def test_bytes_are_those_of_keys_and_values(seed: int) -> None:
    """Compared with a count in Python; null and empty are both 0 bytes."""
    draw = random.Random(seed)
    values = [None, b"", b"a", b"abc" * 50]
    rows: list[dict[str, Any]] = [
        {
            "topic": draw.choice("xy"),
            "partition": draw.randrange(3),
            "offset": n,
            "key": draw.choice(values),
            "value": draw.choice(values),
        }
        for n in range(200)
    ]
    wanted = Counter[TopicPartition]()
    for row in rows:
        wanted[TopicPartition(row["topic"], row["partition"])] += len(row["key"] or b"") + len(row["value"] or b"")
    parts = [pa.Table.from_pylist(rows[at : at + 70], schema=arrow_schema(headers=False)) for at in range(0, 200, 70)]
    assert record_bytes(pa.concat_tables(parts)) == wanted
    assert record_bytes(parts[0].slice(0, 0)) == {}
