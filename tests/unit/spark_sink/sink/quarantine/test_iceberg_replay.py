"""Back from the quarantine of an Iceberg table, each record once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_sink.errors import ConflictError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.iceberg.table_creation import PROPERTIES
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.table_contract import Change, LostRecordsError, Snapshot
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.quarantine import quarantine_commit, quarantine_replay
from spark_sink.sink.quarantine.quarantine_replay import Replayed, replay, waiting
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.landed_offsets import offsets_of
from tests.raw_rows import SCHEMA
from tests.table_kinds import ADDRESS, peer, warehouse

BAD = {2, 5, 7}


def _written(root: Path, begin: int = 0, *, group: str = "g", topic: str = "t") -> None:
    """Write ten offsets, of which three are bad."""
    given = {"path": ADDRESS, "kafka.group.id": group, "checkpointLocation": "c", **warehouse(root)}
    options = SinkOptions.parse(given)
    error = {"error_class": "Bad", "error_text": "no number"}
    rows = [
        {"topic": topic, "partition": 0, "offset": begin + one, "value": b"good"}
        | ({COLUMN: {**error, "value": b"%d" % one}} if one in BAD else {})
        for one in range(10)
    ]
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range(topic, 0, begin, begin + 10)])
    Tables(options).commit(offset, sorting.close(), normal_schema(SCHEMA), begin)


@pytest.fixture
def storage(tmp_path: Path) -> dict[str, str]:
    """Options of the catalog with a table of the offsets 0 to 9, of which 2, 5 and 7 are in quarantine."""
    _written(tmp_path)
    return warehouse(tmp_path)


def _only(rows: pa.Table, *offsets: int) -> pa.Table:
    kept = rows.filter(pc.is_in(rows.column("offset"), pa.array(offsets, pa.int64())))
    return kept.select(["topic", "partition", "offset", "value"])


def test_what_waits_is_what_the_table_lacks(storage: dict[str, str]) -> None:
    """The records keep the values that could not be decoded, and the reason."""
    assert offsets_of(waiting(ADDRESS, "g", storage)) == sorted(BAD)
    (part,) = waiting(ADDRESS, "g", storage, ["topic", "partition", "offset", "value", "error_class"])
    assert {row["offset"]: row["value"] for row in part.to_pylist()} == {one: b"%d" % one for one in BAD}


def test_a_repair_may_leave_records_and_a_second_replay_writes_none_twice(storage: dict[str, str]) -> None:
    """Half is repaired today, the rest with the next version of the decoder."""
    half = lambda rows: _only(rows, 2, 7)  # noqa: E731 -- a repair
    assert replay(ADDRESS, "g", half, storage) == Replayed(rows=2, left=1)
    assert replay(ADDRESS, "g", half, storage) == Replayed(rows=0, left=1)
    assert replay(ADDRESS, "g", None, storage) == Replayed(rows=1, left=0)
    assert replay(ADDRESS, "g", None, storage) == Replayed(rows=0, left=0)
    assert verify(ADDRESS, "g", storage).ok
    assert offsets_of(waiting(ADDRESS, "g", storage)) == []


def test_bad_rows_that_only_the_table_names_wait_too(
    tmp_path: Path, storage: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer died between its two commits; the record is there once after the quarantine has it."""
    swap = IcebergTable.swap

    def dying(table: IcebergTable, snapshot: Snapshot, change: Change) -> None:
        if table.name.endswith("_quarantine"):
            raise KeyboardInterrupt
        swap(table, snapshot, change)

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "swap", dying)
        with pytest.raises(KeyboardInterrupt):
            _written(tmp_path, 10)
    wanted = sorted([*BAD, *(10 + one for one in BAD)])
    assert offsets_of(waiting(ADDRESS, "g", storage)) == wanted
    _written(tmp_path, 20)
    assert offsets_of(waiting(ADDRESS, "g", storage)) == [*wanted, *(20 + one for one in sorted(BAD))]
    assert replay(ADDRESS, "g", None, storage).rows == 9
    assert verify(ADDRESS, "g", storage).ok
    assert sorted(peer(tmp_path).scan().to_arrow()["offset"].to_pylist()) == list(range(30))


def _die_between_the_commits(root: Path, begin: int) -> None:
    """Write ten offsets whose bad records only the table names, and remove the files of these, as of orphans."""

    def dying(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_commit, "add_quarantined", dying)
        before = set((root / "warehouse").rglob("events_quarantine/data/*"))
        with pytest.raises(KeyboardInterrupt):
            _written(root, begin)
    for path in set((root / "warehouse").rglob("events_quarantine/data/*")) - before:
        path.unlink()


def _forget_the_beginning(root: Path) -> None:
    """Let the first snapshot of the quarantine expire, and its first metadata files."""
    quarantine = open_catalog("lake", warehouse(root)).load_table(("raw", "events_quarantine"))
    first = min(quarantine.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    quarantine.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    for number in range(int(PROPERTIES["write.metadata.previous-versions-max"])):
        with quarantine.transaction() as change:
            change.set_properties({"number": str(number)})


@pytest.mark.parametrize("others", [0, 1, 2], ids=["no record yet", "records of another group", "and it is old"])
def test_first_bad_rows_whose_files_are_gone_are_refused(tmp_path: Path, others: int) -> None:
    """The quarantine has no record of the group, as one that was dropped; but this one is older than the files."""
    if others:
        _written(tmp_path, group="h", topic="u")
    _die_between_the_commits(tmp_path, 0)
    if others > 1:
        _written(tmp_path, 10, group="h", topic="u")
        _forget_the_beginning(tmp_path)
    for begin in (10, 20):
        with pytest.raises(LostRecordsError, match=r"3 bad records .* are gone, such as part-.*drop it"):
            _written(tmp_path, begin)


def test_bad_rows_whose_files_are_gone_do_not_spoil_the_quarantine(
    tmp_path: Path, storage: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """No reader could open a quarantine that lists them, nor get its other records. Dropping it is the way out."""
    _die_between_the_commits(tmp_path, 10)
    for begin in (20, 30):  # the second time, too
        with pytest.raises(LostRecordsError, match=r"3 bad records .* are gone, such as part-.*drop it"):
            _written(tmp_path, begin)
    quarantine = open_stored(quarantine_of(ADDRESS), storage)
    assert quarantine is not None
    assert quarantine.count() == len(next(quarantine.rows(["offset"]))) == len(BAD)
    open_catalog("lake", storage).drop_table("raw.events_quarantine")
    _written(tmp_path, 40)
    assert "they are given up" in caplog.text
    # The files of all others are still there.
    assert offsets_of(waiting(ADDRESS, "g", storage)) == sorted(one + bad for one in (0, 20, 30, 40) for bad in BAD)
    assert [len(one.holes) for one in verify(ADDRESS, "g", storage).findings] == [len(BAD)]


def test_of_two_replays_at_once_each_record_is_written_once(
    storage: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one commits while the first repairs: the first looks again, and finds nothing to write."""
    calls: list[int] = []

    def slow(rows: pa.Table) -> pa.Table:
        if not calls:
            calls.append(1)
            assert replay(ADDRESS, "g", None, storage).rows == len(BAD)
        return quarantine_replay.as_is(rows, peer_schema)

    peer_schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
    assert replay(ADDRESS, "g", slow, storage) == Replayed(rows=0, left=0)
    assert verify(ADDRESS, "g", storage).ok
    always = lambda *_: (_ for _ in ()).throw(ConflictError("another writer was faster"))  # noqa: E731 -- a swap
    monkeypatch.setattr(IcebergTable, "swap", always)
    monkeypatch.setattr(quarantine_replay, "ATTEMPTS", 2)
    _remove(storage)
    with pytest.raises(TableError, match="events: the replay lost against other writers 2 times"):
        replay(ADDRESS, "g", None, storage)


def _remove(storage: dict[str, str]) -> None:
    """Delete the replayed records by another engine, so that they wait again."""
    open_catalog("lake", storage).load_table("raw.events").delete("offset = 2")


def test_the_address_of_the_quarantine_is_refused(storage: dict[str, str]) -> None:
    """Its records would be compared with themselves, and none would wait."""
    with pytest.raises(TableError, match="is the quarantine of iceberg://"):
        replay(quarantine_of(ADDRESS), "g", None, storage)
