"""The quarantine of an Iceberg table that is rewound: bad records are kept, read again, or given up by name."""

from pathlib import Path

import pytest

from spark_sink.cli import main
from spark_sink.errors import TableError
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import identifier
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.iceberg_batches import Writer, bad_offsets, offsets
from tests.table_kinds import ADDRESS, catalog, warehouse
from tests.unit.spark_sink.sink.rewind.rolled_back_lake import KEY, Lake, continue_to, stopped_between_its_commits

pytestmark = pytest.mark.long


@pytest.mark.parametrize("quarantine", [True, False], ids=["a quarantine", "no quarantine yet"])
def test_bad_records_that_only_the_table_names_are_added_or_read_again(lake: Lake, *, quarantine: bool) -> None:
    """A writer was stopped between its two commits. It goes on after the rewind, and must not add its records."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2} if quarantine else ())
    go_on_below = stopped_between_its_commits(writer, 10, 20, {12})
    past = lake.snapshot()
    go_on_above = stopped_between_its_commits(Writer(lake.root), 20, 30, {25})
    lake.roll_back(past)
    assert lake.rewind() == {KEY: (30, 20)}
    assert bad_offsets(lake.root) == [*([2] if quarantine else []), 12]
    for go_on in (go_on_below, go_on_above):
        with pytest.raises(TableError, match="`azimuth rewind` set the positions back while this process was running"):
            go_on()
    continue_to(lake, 40, {21, 33})
    lake.assert_whole(40)


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
    continue_to(lake, 20)
    assert offsets(lake.root) == list(range(20))


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
    continue_to(lake, 30, {23})
    lake.assert_whole(30)


def test_bad_records_whose_files_are_gone_are_given_up(lake: Lake) -> None:
    """As for Delta tables: those from the new position on are read again, and verify lists the others."""
    writer = Writer(lake.root)
    writer.write(0, 10, {2})
    before = set((lake.root / "warehouse").rglob("events_quarantine/data/*"))
    stopped_between_its_commits(writer, 10, 20, {12})
    past = lake.snapshot()
    stopped_between_its_commits(Writer(lake.root), 20, 30, {22})
    for path in set((lake.root / "warehouse").rglob("events_quarantine/data/*")) - before:
        path.unlink()
    lake.roll_back(past)
    said: list[str] = []
    rewind(ADDRESS, None, warehouse(lake.root), apply=True, tell=said.append)
    assert "bad records that the table names are gone" in said[-1]
    continue_to(lake, 30, {22})
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
