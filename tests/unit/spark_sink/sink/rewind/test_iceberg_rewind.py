"""A rewind of a rolled back Iceberg table: each offset is in exactly one of table and quarantine again."""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from spark_sink.cli import main
from spark_sink.errors import HoleError, TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.iceberg.catalogs import identifier
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.lake.verification import verify
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.quarantine import quarantine_commit
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.rewind import iceberg_rewind
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.iceberg_batches import Writer, bad_offsets, offsets
from tests.table_kinds import ADDRESS, catalog, peer, warehouse

pytestmark = pytest.mark.long

KEY = TopicPartition("t", 0)


class Killed(BaseException):
    """The process ends here."""


class Lake(NamedTuple):
    """A table under test."""

    root: Path

    def snapshot(self) -> int:
        """The current snapshot."""
        found = peer(self.root).metadata.current_snapshot_id
        assert found is not None
        return found

    def roll_back(self, snapshot: int, address: str = ADDRESS) -> None:
        """Set the current snapshot, as Spark's procedures do."""
        table = catalog(self.root).load_table(identifier(address).path)
        table.manage_snapshots().set_current_snapshot(snapshot_id=snapshot).commit()

    def rewind(self, *, apply: bool = True) -> dict[TopicPartition, tuple[int, int]]:
        """Rewind, and return the positions before and after."""
        return {one.key: (one.before, one.after) for one in rewind(ADDRESS, None, warehouse(self.root), apply=apply)}

    def position(self, key: TopicPartition = KEY, group: str = "g") -> int:
        """The table's position."""
        snapshot = IcebergTable(ADDRESS, group, warehouse(self.root)).refresh()
        assert snapshot is not None
        return snapshot.positions[key]

    def forget(self) -> None:
        """Remove all former metadata files, as most are after twenty more commits."""
        for one in peer(self.root).metadata.metadata_log:
            Path(one.metadata_file.removeprefix("file://")).unlink(missing_ok=True)

    def assert_whole(self, end: int, topic: str = "t") -> None:
        """Each offset is in exactly one of table and quarantine."""
        assert sorted(offsets(self.root, topic=topic) + bad_offsets(self.root, topic=topic)) == list(range(end))
        assert verify(ADDRESS, None if topic == "t" else "h", warehouse(self.root)).ok


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with no row yet."""
    return Lake(tmp_path)


def _go_on(lake: Lake, end: int, bad: Collection[int] = (), group: str = "g", topic: str = "t") -> None:
    """A new writer continues at the table's position."""
    writer = Writer(lake.root, group, topic)
    writer.write(lake.position(TopicPartition(writer.topic, 0), writer.options.group), end, bad)


@pytest.mark.parametrize("known", [True, False], ids=["its metadata file is there", "its metadata file is gone"])
@pytest.mark.parametrize("more", [{}, {"partitionBy": "topic, bucket(2, partition)"}], ids=["flat", "by partition"])
def test_a_rolled_back_table_is_read_again_from_its_rows(lake: Lake, *, known: bool, more: dict[str, str]) -> None:
    """The dry run changes nothing; bad records from the position on are read again, and others stay."""
    writer = Writer(lake.root, more=more)
    writer.write(0, 10, {2, 9})
    past = lake.snapshot()
    writer.write(10, 20, {10, 12, 15})
    lake.roll_back(past)
    with pytest.raises(TableError, match=r"rolled back or replaced.*`azimuth rewind`"):
        writer.write(20, 30)
    if not known:
        lake.forget()
    # Without the position of that time, the bad records that follow the rows without a gap stay: 9 and 10.
    after = 10 if known else 11
    assert lake.rewind(apply=False) == {KEY: (20, after)}
    assert bad_offsets(lake.root) == [2, 9, 10, 12, 15]
    assert lake.rewind() == {KEY: (20, after)}
    assert bad_offsets(lake.root) == ([2, 9] if known else [2, 9, 10])
    assert (lake.position(), lake.rewind()) == (after, {})
    stored = open_stored(ADDRESS, warehouse(lake.root))
    assert stored is not None
    assert stored.state.groups["g"].quarantined == {KEY: after}
    _go_on(lake, 40, {13, 30})
    lake.assert_whole(40)
    assert bad_offsets(lake.root) == [2, 9, *([] if known else [10]), 13, 30]


def test_a_partition_without_rows_begins_again_at_its_first_offset(lake: Lake) -> None:
    """And partitions that lost no row keep their positions."""
    writer = Writer(lake.root)
    writer.write(0, 10, {3})
    past = lake.snapshot()
    writer.write(7, 9, {8}, partition=1)
    lake.roll_back(past)
    assert lake.rewind() == {TopicPartition("t", 1): (9, 7)}
    assert bad_offsets(lake.root) == [3]
    Writer(lake.root).write(7, 9, partition=1)
    _go_on(lake, 20)
    assert verify(ADDRESS, None, warehouse(lake.root)).ok


def test_rows_that_another_engine_deleted_are_read_again(lake: Lake) -> None:
    """The table was not rolled back: agents would go on, and `azimuth verify` finds a hole."""
    writer = Writer(lake.root)
    writer.write(0, 10, {3})
    writer.write(10, 20, {17})
    peer(lake.root).delete("offset >= 12")
    assert lake.rewind() == {KEY: (20, 12)}
    assert bad_offsets(lake.root) == [3]
    _go_on(lake, 20, {12})
    lake.assert_whole(20)


def test_one_commit_sets_the_positions_of_all_groups(lake: Lake) -> None:
    """A rollback takes the rows of all of them."""
    writers = {"g": Writer(lake.root), "h": Writer(lake.root, "h", "u")}
    for one in writers.values():
        one.write(0, 10, {4})
    past = lake.snapshot()
    for one in writers.values():
        one.write(10, 20, {14})
    lake.roll_back(past)
    with pytest.raises(TableError, match=r"positions of all groups \(g, h\); leave out --group"):
        rewind(ADDRESS, "g", warehouse(lake.root), apply=True)
    assert lake.rewind() == {KEY: (20, 10), TopicPartition("u", 0): (20, 10)}
    for group, topic in (("g", "t"), ("h", "u")):
        _go_on(lake, 30, {15}, group=group, topic=topic)
        assert sorted(offsets(lake.root, topic=topic) + bad_offsets(lake.root, topic=topic)) == list(range(30))
        assert bad_offsets(lake.root, topic=topic) == [4, 15]


STEPS = ["_add_named", "_mark", "_set_positions", "_trim"]


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("step", STEPS)
def test_a_rewind_is_repeated_after_a_crash(lake: Lake, step: str, *, after: bool) -> None:
    """At each step; in between, agents refuse the table or find nothing amiss."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    past = lake.snapshot()
    writer.write(10, 20, {12})
    lake.roll_back(past)
    done: Callable[..., object] = getattr(iceberg_rewind, step)

    def killed(*given: object) -> None:
        if after:
            done(*given)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_rewind, step, killed)
        with pytest.raises(Killed):
            lake.rewind()
    finished = (step, after) == ("_trim", True)
    if not finished:
        with pytest.raises(TableError, match=r"rolled back|its table's position is 10;"):
            Writer(lake.root).write(10, 20)
    lake.rewind()
    assert (lake.position(), bad_offsets(lake.root)) == (10, [2])
    _go_on(lake, 30, {25})
    lake.assert_whole(30)


def test_a_crash_before_the_quarantine_is_trimmed_moves_no_position_again(lake: Lake) -> None:
    """Without the metadata file the rows alone would say 9, and the bad record 9 would be read a second time."""
    writer = Writer(lake.root)
    writer.write(0, 8)
    writer.write(8, 11, {9, 10})
    past = lake.snapshot()
    writer.write(11, 20, {12})
    lake.roll_back(past)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_rewind, "_trim", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            lake.rewind()
    peer(lake.root).delete("offset = 8")
    lake.forget()
    assert lake.rewind() == {}
    assert (lake.position(), bad_offsets(lake.root)) == (11, [9, 10])


def _stopped_between_its_commits(writer: Writer, begin: int, end: int, bad: Collection[int]) -> Callable[[], None]:
    """Write a batch up to the commit of the table; the result goes on with that of the quarantine."""
    add, held = quarantine_commit.add_quarantined, list[Callable[[], None]]()

    def stop(*given: object, **more: object) -> None:
        held.append(lambda: add(*given, **more))  # type: ignore[arg-type]  # handed on
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_commit, "add_quarantined", stop)
        with pytest.raises(Killed):
            writer.write(begin, end, bad)
    return held[0]


@pytest.mark.parametrize("quarantine", [True, False], ids=["a quarantine", "no quarantine yet"])
def test_bad_records_that_only_the_table_names_are_added_or_read_again(lake: Lake, *, quarantine: bool) -> None:
    """A writer was stopped between its two commits. It goes on after the rewind, and must not add its records."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2} if quarantine else ())
    go_on_below = _stopped_between_its_commits(writer, 10, 20, {12})
    past = lake.snapshot()
    go_on_above = _stopped_between_its_commits(Writer(lake.root), 20, 30, {25})
    lake.roll_back(past)
    assert lake.rewind() == {KEY: (30, 20)}
    assert bad_offsets(lake.root) == [*([2] if quarantine else []), 12]
    for go_on in (go_on_below, go_on_above):
        with pytest.raises(TableError, match="`azimuth rewind` set the positions back while this process was running"):
            go_on()
    _go_on(lake, 40, {21, 33})
    lake.assert_whole(40)


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
    _go_on(lake, 30)
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
            _go_on(lake, 20, {13})
        swap(table, snapshot, change)

    monkeypatch.setattr(IcebergTable, "swap", slow)
    with pytest.raises(TableError, match="`azimuth rewind` set the positions back while this process was running"):
        writer.write(20, 30, {22})
    _go_on(lake, 30, {23})
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
        _stopped_between_its_commits(Writer(lake.root), 20, 30, {22})

    with monkeypatch.context() as patch:
        patch.setattr(iceberg_rewind, "_mark", late)
        with pytest.raises(TableError, match="another writer committed meanwhile"):
            lake.rewind()
    assert lake.rewind() == {}  # the rows now reach to 30 again, with a hole that is no rewind's
    _go_on(lake, 40)
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
            _go_on(lake, 20, {15})
        done(plan)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(iceberg_rewind, "_trim", late)
    with pytest.raises(TableError, match="another writer committed meanwhile"):
        lake.rewind()
    assert bad_offsets(lake.root) == [2, 15]
    lake.assert_whole(20)


def test_a_replayed_record_waits_again(lake: Lake) -> None:
    """Its row is gone, and the quarantine has it."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    past = lake.snapshot()
    assert replay(ADDRESS, "g", None, warehouse(lake.root)).rows == 1
    writer.write(10, 20)
    lake.roll_back(past)
    assert lake.rewind() == {KEY: (20, 10)}
    assert (offsets(lake.root).count(2), bad_offsets(lake.root)) == (0, [2])
    assert replay(ADDRESS, "g", None, warehouse(lake.root)).rows == 1
    _go_on(lake, 20)
    assert offsets(lake.root) == list(range(20))


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
        _go_on(lake, 20)
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
    _go_on(lake, 20, {13})
    third = lake.snapshot()
    lake.roll_back(second)
    with pytest.raises(
        TableError, match=f"Set the current snapshot to {third}, or delete the rows of t/0 from offset 10"
    ):
        lake.rewind()
    assert bad_offsets(lake.root) == [2, 13]
    peer(lake.root).delete("offset >= 10")
    assert lake.rewind() == {KEY: (20, 10)}
    _go_on(lake, 20, {14})
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
    _go_on(lake, 25, {12})
    third = lake.snapshot()
    lake.roll_back(second)
    with pytest.raises(
        TableError, match=f"Set the current snapshot to {third}, or delete the rows of t/0 from offset 12"
    ):
        lake.rewind()
    peer(lake.root).delete("offset >= 12")
    assert lake.rewind() == {KEY: (25, 13)}
    _go_on(lake, 25)
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
        _go_on(lake, end + 5, {end + 1})
    lake.assert_whole(15)
    assert bad_offsets(lake.root) == [2, 9, 11]


def test_a_quarantine_that_was_rolled_back_too_is_refused(lake: Lake) -> None:
    """No agent would read its records again; the snapshot that has them is named."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    place = quarantine_of(ADDRESS)
    early = open_stored(place, warehouse(lake.root))
    assert early is not None
    writer.write(10, 20, {12})
    past = lake.snapshot()
    writer.write(20, 30, {22})
    whole = open_stored(place, warehouse(lake.root))
    assert whole is not None
    lake.roll_back(past)
    lake.roll_back(early.state.snapshot, place)
    with pytest.raises(TableError, match=f"rolled back, too.*Set its current snapshot to {whole.state.snapshot}"):
        lake.rewind()
    lake.roll_back(whole.state.snapshot, place)
    lake.rewind()
    _go_on(lake, 30, {23})
    lake.assert_whole(30)


def test_bad_records_whose_files_are_gone_are_given_up(lake: Lake) -> None:
    """As for Delta tables: those from the new position on are read again, and verify lists the others."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    before = set((lake.root / "warehouse").rglob("events_quarantine/data/*"))
    _stopped_between_its_commits(writer, 10, 20, {12})
    past = lake.snapshot()
    _stopped_between_its_commits(Writer(lake.root), 20, 30, {22})
    for path in set((lake.root / "warehouse").rglob("events_quarantine/data/*")) - before:
        path.unlink()
    lake.roll_back(past)
    said: list[str] = []
    rewind(ADDRESS, None, warehouse(lake.root), apply=True, tell=said.append)
    assert "bad records that the table names are gone" in said[-1]
    _go_on(lake, 30, {22})
    (found,) = verify(ADDRESS, None, warehouse(lake.root)).findings
    assert (found.holes, bad_offsets(lake.root)) == (((12, 13),), [2, 22])


@pytest.mark.parametrize("group", [None, "g"])
def test_a_quarantine_without_its_table_is_emptied(lake: Lake, group: str | None) -> None:
    """The table was dropped and recreated: no group has a position in it, and agents refuse the old quarantine."""
    Writer(lake.root).write(0, 10, {2, 9})
    catalog(lake.root).drop_table(identifier(ADDRESS).path)
    with pytest.raises(TableError, match=r"`azimuth rewind lake.raw.events --apply` takes out the records"):
        Writer(lake.root).write(0, 10, {3})
    assert rewind(ADDRESS, group, warehouse(lake.root), apply=True) == []
    assert bad_offsets(lake.root) == []
    Writer(lake.root).write(0, 10, {3})
    lake.assert_whole(10)


def test_a_quarantine_whose_list_of_files_is_gone_is_named(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing was changed."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    past = lake.snapshot()
    writer.write(10, 20, {12})
    lake.roll_back(past)
    quarantine = catalog(lake.root).load_table(identifier(quarantine_of(ADDRESS)).path).current_snapshot()
    assert quarantine is not None
    Path(quarantine.manifest_list.removeprefix("file://")).unlink()
    with pytest.raises(SystemExit):
        main(["rewind", ADDRESS, f"--storage=catalog.warehouse={lake.root / 'warehouse'}", "--apply"])
    assert f"{quarantine_of(ADDRESS)}: its list of files cannot be read: FileNotFoundError" in capsys.readouterr().err
    assert lake.snapshot() == past


def test_the_command_says_what_it_changes(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of `{topic}` is named by itself; a name and an address mean the same."""
    more = {"path": "iceberg://lake.raw.{topic}"}
    storage = f"--storage=catalog.warehouse={lake.root / 'warehouse'}"
    writer = Writer(lake.root, topic="u.v", more=more)
    writer.write(0, 10, {2})
    table = catalog(lake.root).load_table(("raw", "u_v"))
    past = table.metadata.current_snapshot_id
    assert past is not None
    writer.write(10, 20, {12})
    lake.roll_back(past, "iceberg://lake.raw.u_v")

    def azimuth(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, storage])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    assert "name it, without {topic}" in azimuth("rewind", "lake.raw.{topic}")[2]
    assert "there is no Iceberg table" in azimuth("rewind", "lake.raw.none")[2]
    assert "is the quarantine of" in azimuth("rewind", "lake.raw.u_v_quarantine")[2]
    code, out, _ = azimuth("rewind", "lake.raw.u_v")
    assert "iceberg://lake.raw.u_v_quarantine: 1 bad records from the new positions on would be removed" in out
    assert (code, out.splitlines()[1:]) == (
        0,
        [
            "u.v/0: 20 -> 10",
            "iceberg://lake.raw.u_v: 1 positions are ahead of the rows; --apply sets them back",
        ],
    )
    code, out, err = azimuth("rewind", "iceberg://lake.raw.u_v", "--apply", "--json")
    assert (code, json.loads(out)) == (0, [{"topic": "u.v", "partition": 0, "before": 20, "after": 10}])
    assert "1 bad records from the new positions on were removed" in err
    Writer(lake.root, topic="u.v", more=more).write(10, 20)
    assert verify("iceberg://lake.raw.u_v", None, warehouse(lake.root)).ok
