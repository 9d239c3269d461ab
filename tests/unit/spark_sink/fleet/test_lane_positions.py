"""The books of a lane: whatever happens between, no record is handed over twice and none is left out."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.fleet import FleetTopic
from spark_sink.fleet.lane_positions import LanePositions
from spark_sink.ranges.batch_offset import TopicPartition

TOPIC = FleetTopic(cluster="c", id="1", name="flights", partitions=2)
KEY = TopicPartition("label", 0)


def ledger(at: int | None = None, topics: Mapping[FleetTopic, str] | None = None) -> LanePositions:
    """One that follows a topic and has begun its first partition."""
    made = LanePositions()
    made.follow({TOPIC: "label"} if topics is None else topics)
    made.begin(KEY, at)
    return made


def read(books: LanePositions, *offsets: int) -> list[int]:
    """Offer records; those taken."""
    taken = []
    for offset in offsets:
        if (key := books.wants("flights", 0, offset)) is not None:
            books.take(key, offset)
            taken.append(offset)
    return taken


def hand_over_and_settle(books: LanePositions) -> None:
    """Hand over what was read, and let it be in the table."""
    ranges, _ = books.hand_over()
    books.settle({one.key: one.end for one in ranges}, {})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 5)),
        st.tuples(st.just("gap"), st.integers(1, 3)),
        st.tuples(st.sampled_from(["hand over", "settle", "fail", "move"]), st.just(0)),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_parts_handed_over_follow_one_another_without_a_hole(steps: list[tuple[str, int]]) -> None:
    """Records come, with gaps between offsets; tables take parts or refuse; partitions leave and come back.

    Reading goes on from the table's position each time, as the lane does.
    """
    books, table, log = ledger(0), 0, 0
    on_its_way: list[tuple[int, int]] = []
    for step, count in [*steps, ("settle", 0), ("hand over", 0), ("settle", 0)]:
        if step == "read":
            assert read(books, *range(log, log + count)) == list(range(log, log + count))
            log += count
        elif step == "gap":
            log += count  # offsets that compaction or a transaction's mark has taken
        elif step == "hand over" and not on_its_way:
            ranges, topics = books.hand_over()
            on_its_way = [(one.begin, one.end) for one in ranges]
            assert topics == ({"label": TOPIC} if ranges else {})
        elif step == "settle" and on_its_way:
            [(begin, end)], on_its_way = on_its_way, []
            assert begin == table
            table = end
            assert books.settle({KEY: end}, {}) == ({}, {TopicPartition("flights", 0): end})
        elif step in {"fail", "move"}:
            on_its_way = []
            if step == "fail":
                books.clear()
                books.stale = False
            else:
                books.leave_out({"label"})
            books.begin(KEY, table)
            log = table
    assert books.records == 0


def test_a_table_that_is_further_is_followed() -> None:
    """If another agent wrote the records just read, reading continues after them, and older records are dropped."""
    books = ledger(10)
    assert read(books, 10, 11) == [10, 11]
    books.hand_over()
    onward, held = books.settle({KEY: 12}, {KEY: 20})
    assert onward == held == {TopicPartition("flights", 0): 20}
    assert read(books, 12, 19, 20) == [20]
    ranges, _ = books.hand_over()
    assert [(one.begin, one.end) for one in ranges] == [(20, 21)]


def test_a_table_that_is_less_far_than_what_was_read_meanwhile_is_not_followed() -> None:
    """Records received during a commit stay: the next compare and swap leaves out those that are in the table."""
    books = ledger(0)
    read(books, 0, 1)
    books.hand_over()
    read(books, 2, 3, 4)
    assert books.settle({KEY: 2}, {KEY: 4})[0] == {}
    assert [(one.begin, one.end) for one in books.hand_over()[0]] == [(2, 5)]


def test_nothing_is_taken_that_was_not_begun_or_while_a_hole_would_be_left() -> None:
    """Other partitions, other topics, dropped ones, and all records after `forget`."""
    books = ledger(5)
    assert books.wants("flights", 1, 5) is None
    assert books.wants("other", 0, 5) is None
    assert read(books, 4, 5) == [5]
    books.forget()
    assert (books.records, read(books, 6)) == (0, [])
    books.clear()
    books.stale = False
    assert read(books, 6) == []
    books.begin(KEY, 5)
    books.drop([KEY])
    assert (books.holds(KEY), read(books, 5)) == (False, [])


def test_what_was_read_of_a_topic_that_leaves_is_still_handed_over() -> None:
    """The lane's topics change while records are held: they go into the table under the label they were read with."""
    books = ledger(0)
    read(books, 0, 1)
    assert books.follow({}) == set()
    assert read(books, 2) == []
    ranges, topics = books.hand_over()
    assert [(one.topic, one.begin, one.end) for one in ranges] == [("label", 0, 2)]
    assert topics == {"label": TOPIC}
    assert books.settle({KEY: 2}, {}) == ({}, {})


@pytest.mark.parametrize(("label", "new"), [("label", set()), ("label.2", {"flights"})])
def test_a_topic_with_another_label_is_a_new_one(label: str, new: set[str]) -> None:
    """A recreated topic has its own label; the partitions of the old one have no position any more."""
    books = ledger(7)
    assert books.follow({TOPIC: label}) == new
    assert books.holds(KEY) is not bool(new)
    assert list(books.positions()) == ([] if new else [("flights", 0, 7)])


def test_without_a_position_a_partition_begins_at_its_first_record() -> None:
    """The table has nothing of it: its range begins where its log does."""
    books = ledger(None)
    assert books.reached(KEY) is None
    assert read(books, 40, 41) == [40, 41]
    assert books.reached(KEY) == 42
    assert [(one.begin, one.end) for one in books.hand_over()[0]] == [(40, 42)]


@given(at=st.integers(0, 9), records=st.integers(0, 4), marks=st.integers(0, 3), more=st.integers(0, 2))
def test_a_partition_read_to_its_end_stands_there_although_its_last_offsets_are_no_records(
    at: int, records: int, marks: int, more: int
) -> None:
    """A transaction ends with a mark, which no client returns: else the lag of an idle topic would never be 0."""
    books = ledger(at)
    read(books, *range(at, at + records))
    end = at + records + marks
    books.reach_end("flights", 0, end)
    assert list(books.positions()) == [("flights", 0, at if records else end)], "records read are not in the table yet"
    hand_over_and_settle(books)
    assert list(books.positions()) == [("flights", 0, end)]
    read(books, *range(end, end + more))
    hand_over_and_settle(books)
    assert list(books.positions()) == [("flights", 0, end + more)]
    books.begin(KEY, at)
    assert list(books.positions()) == [("flights", 0, at)], "read again from there"


def test_the_end_of_a_log_without_records_is_a_position() -> None:
    """Retention may have removed everything before the first read: then nothing is unread."""
    books = ledger(None)
    assert list(books.positions()) == [("flights", 0, None)]
    books.reach_end("flights", 0, 7)
    books.reach_end("flights", 1, 7)
    assert list(books.positions()) == [("flights", 0, 7)], "the other partition is not held"


def test_while_a_table_refuses_its_last_known_positions_are_returned() -> None:
    """The lag is measured from them: it grows while nothing is written, and neither stands still nor is unknown."""
    books = ledger(5)
    assert read(books, 5, 6) == [5, 6]
    books.hand_over()
    books.settle({KEY: 7}, {})
    assert read(books, 7, 8) == [7, 8]
    books.hand_over()  # the table refuses these
    books.forget()
    assert list(books.positions()) == [("flights", 0, 7)]
    books.clear()
    assert list(books.positions()) == [("flights", 0, 7)]
    books.begin(KEY, 8)
    books.resume()
    assert list(books.positions()) == [("flights", 0, 8)]
    books.clear()
    assert list(books.positions()) == [("flights", 0, 8)]
    books.drop([KEY])
    assert not list(books.positions())


@pytest.mark.parametrize("at", [None, 5])
def test_records_that_are_being_written_are_not_in_the_table_yet(at: int | None) -> None:
    """A slow store takes a batch for many seconds: the agent logged a small lag, or none, beside `0 rows written`."""
    books = ledger(at)
    read(books, 5, 6)
    books.hand_over()
    assert list(books.positions()) == [("flights", 0, at)]
    books.reach_end("flights", 0, 7)
    assert list(books.positions()) == [("flights", 0, at)]
    read(books, 7)
    books.settle({KEY: 7}, {})
    assert list(books.positions()) == [("flights", 0, 7)]


def test_positions_of_a_table_that_never_answered_are_unknown() -> None:
    """A lag from the first record of the log would be wrong by all records that are in the table already."""
    books = LanePositions()
    books.follow({TOPIC: "label"})
    books.stale = True
    books.begin(KEY, None)
    assert not list(books.positions())
