"""A rewind of a rolled back Iceberg table: each offset is in exactly one of table and quarantine again."""

import json
from collections.abc import Callable

import pytest

from spark_sink.cli import main
from spark_sink.errors import TableError
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.sink.rewind import iceberg_rewind
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.iceberg_batches import Writer, bad_offsets, offsets
from tests.table_kinds import ADDRESS, catalog, peer, warehouse
from tests.unit.spark_sink.sink.rewind.rolled_back_lake import (
    KEY,
    Killed,
    Lake,
    continue_to,
)

pytestmark = pytest.mark.long


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
    continue_to(lake, 40, {13, 30})
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
    continue_to(lake, 20)
    assert verify(ADDRESS, None, warehouse(lake.root)).ok


def test_rows_that_another_engine_deleted_are_read_again(lake: Lake) -> None:
    """The table was not rolled back: agents would go on, and `azimuth verify` finds a hole."""
    writer = Writer(lake.root)
    writer.write(0, 10, {3})
    writer.write(10, 20, {17})
    peer(lake.root).delete("offset >= 12")
    assert lake.rewind() == {KEY: (20, 12)}
    assert bad_offsets(lake.root) == [3]
    continue_to(lake, 20, {12})
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
        continue_to(lake, 30, {15}, group=group, topic=topic)
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
    continue_to(lake, 30, {25})
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
