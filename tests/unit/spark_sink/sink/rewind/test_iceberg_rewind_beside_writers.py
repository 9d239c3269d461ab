"""A rewind of an Iceberg table while others write, and rows from before it that come late."""

import pyarrow as pa
import pytest

from spark_sink.errors import HoleError, TableError
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.rewind import iceberg_rewind
from tests.iceberg_batches import Writer, bad_offsets
from tests.table_kinds import ADDRESS, peer, warehouse
from tests.unit.spark_sink.sink.rewind.rolled_back_lake import KEY, Lake, continue_to, stopped_between_its_commits

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seen", [True, False], ids=["it saw the rollback", "it saw nothing"])
def test_a_running_writer_notices_the_rewind(lake: Lake, *, seen: bool) -> None:
    """Its batch begins past the position, and later batches of a restarted one do not."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    past = lake.snapshot()
    writer.write(10, 20, {12})
    lake.roll_back(past)
    if seen:
        with pytest.raises(TableError, match="rolled back"):
            writer.write(20, 30)
    lake.rewind()
    said = "`azimuth rewind` set the positions back while this process was running"
    for handle in ("events", "events_quarantine"):  # each handle says it once
        with pytest.raises(TableError, match=rf"lake\.raw\.{handle}: {said}"):
            writer.write(20, 30)
    with pytest.raises(HoleError):
        writer.write(20, 30)
    continue_to(lake, 30)
    lake.assert_whole(30)


def test_a_writer_in_the_middle_of_its_commit_notices_the_rewind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked before the rollback, and another agent has come to the same position again since the rewind."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    past = lake.snapshot()
    writer.write(10, 20, {12})
    swap, pending = IcebergTable.swap, [1]

    def slow(table: IcebergTable, snapshot: Snapshot, change: Change) -> None:
        if pending:
            pending.pop()
            lake.roll_back(past)
            lake.rewind()
            continue_to(lake, 20, {13})
        swap(table, snapshot, change)

    monkeypatch.setattr(IcebergTable, "swap", slow)
    with pytest.raises(TableError, match="`azimuth rewind` set the positions back while this process was running"):
        writer.write(20, 30, {22})
    continue_to(lake, 30, {23})
    lake.assert_whole(30)


def test_a_commit_during_the_rewind_fails_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The positions are set onto exactly the rows that were read."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    writer.write(10, 20)
    peer(lake.root).delete("offset >= 15")
    done = iceberg_rewind._set_positions

    def late(plan: object) -> None:
        Writer(lake.root).write(20, 30, {22})
        done(plan)  # type: ignore[arg-type]  # handed on

    with monkeypatch.context() as patch:
        patch.setattr(iceberg_rewind, "_set_positions", late)
        with pytest.raises(TableError, match=r"another writer committed meanwhile\. Stop the agents"):
            lake.rewind()
    assert lake.position() == 30
    assert bad_offsets(lake.root) == [2, 22]


def test_bad_records_named_during_the_rewind_are_not_forgotten(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rewind takes those off the table's list that it has added, and no other."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    writer.write(10, 20)
    peer(lake.root).delete("offset >= 15")
    done = iceberg_rewind._mark

    def late(*given: object) -> None:
        done(*given)  # type: ignore[arg-type]  # handed on
        stopped_between_its_commits(Writer(lake.root), 20, 30, {22})

    with monkeypatch.context() as patch:
        patch.setattr(iceberg_rewind, "_mark", late)
        with pytest.raises(TableError, match="another writer committed meanwhile"):
            lake.rewind()
    assert lake.rewind() == {}  # the rows now reach to 30 again, with a hole that is no rewind's
    continue_to(lake, 40)
    (found,) = verify(ADDRESS, None, warehouse(lake.root)).findings
    assert (found.holes, bad_offsets(lake.root)) == (((15, 20),), [2, 22])


def test_a_second_rewind_that_comes_late_takes_no_new_record(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has trimmed the quarantine meanwhile, and agents have begun."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    past = lake.snapshot()
    writer.write(10, 20, {12})
    lake.roll_back(past)
    done, pending = iceberg_rewind._trim, [1]

    def late(plan: object) -> None:
        if pending:
            pending.pop()
            lake.rewind()
            continue_to(lake, 20, {15})
        done(plan)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(iceberg_rewind, "_trim", late)
    with pytest.raises(TableError, match="another writer committed meanwhile"):
        lake.rewind()
    assert bad_offsets(lake.root) == [2, 15]
    lake.assert_whole(20)


def test_a_replay_that_is_running_notices_the_rewind(lake: Lake) -> None:
    """Its record is above the position now, and the agents read it again."""
    writer = Writer(lake.root)
    writer.write(0, 10)
    past = lake.snapshot()
    writer.write(10, 20, {12})
    calls: list[int] = []

    def slow(rows: pa.Table) -> pa.Table:
        calls.append(rows.num_rows)
        lake.roll_back(past)
        lake.rewind()
        continue_to(lake, 20)
        return rows.select(["topic", "partition", "offset", "value"])

    with pytest.raises(TableError, match="`azimuth rewind` set the positions back while this process was running"):
        replay(ADDRESS, "g", slow, warehouse(lake.root))
    assert calls == [1]
    lake.assert_whole(20)


def test_rows_from_before_an_earlier_rewind_are_refused(lake: Lake) -> None:
    """Those rows need the bad record 12, which that rewind removed; the quarantine has 13 instead."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    first = lake.snapshot()
    writer.write(10, 20, {12})
    second = lake.snapshot()
    lake.roll_back(first)
    lake.rewind()
    continue_to(lake, 20, {13})
    third = lake.snapshot()
    lake.roll_back(second)
    with pytest.raises(
        TableError, match=f"Set the current snapshot to {third}, or delete the rows of t/0 from offset 10"
    ):
        lake.rewind()
    assert bad_offsets(lake.root) == [2, 13]
    peer(lake.root).delete("offset >= 10")
    assert lake.rewind() == {KEY: (20, 10)}
    continue_to(lake, 20, {14})
    lake.assert_whole(20)
    assert bad_offsets(lake.root) == [2, 14]


def test_rows_that_became_bad_records_after_an_earlier_rewind_are_refused(lake: Lake) -> None:
    """That rewind removed no bad record, but the row 12 would be in the quarantine, too."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    first = lake.snapshot()
    writer.write(10, 20)
    second = lake.snapshot()
    lake.roll_back(first)
    lake.rewind()
    continue_to(lake, 25, {12})
    third = lake.snapshot()
    lake.roll_back(second)
    with pytest.raises(
        TableError, match=f"Set the current snapshot to {third}, or delete the rows of t/0 from offset 12"
    ):
        lake.rewind()
    peer(lake.root).delete("offset >= 12")
    assert lake.rewind() == {KEY: (25, 13)}
    continue_to(lake, 25)
    lake.assert_whole(25)
    assert bad_offsets(lake.root) == [2, 12]


def test_rows_from_before_earlier_rewinds_fit_if_they_are_older_than_what_these_removed(lake: Lake) -> None:
    """Further and further back: what a rewind removed is not theirs."""
    writer = Writer(lake.root)
    pasts = []
    for begin in (0, 10, 20, 30):
        writer.write(begin, begin + 10, {begin + 2, begin + 9})
        pasts.append(lake.snapshot())
    for past, end in ((pasts[2], 30), (pasts[0], 10)):
        lake.roll_back(past)
        assert lake.rewind()[KEY][1] == end
        continue_to(lake, end + 5, {end + 1})
    lake.assert_whole(15)
    assert bad_offsets(lake.root) == [2, 9, 11]
