"""Back from quarantine, each record once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from typer.testing import CliRunner

from spark_sink.cli._app import app
from spark_sink.cli.quarantine import register
from spark_sink.errors import ConflictError, OptionError, SchemaError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.double_row_removal import repair
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.lake.quarantine_reader import quarantine_records
from spark_sink.lake.table_contract import Change, Snapshot
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.quarantine.quarantine_replay import Replayed, as_is, replay, waiting
from spark_sink.sink.quarantine.quarantine_version import Quarantine
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.int96_files import rewrite_as_spark
from tests.landed_offsets import offsets_of
from tests.raw_rows import SCHEMA

ROWS = pa.schema([field for field in SCHEMA if field.name != COLUMN])


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table with the offsets 0 to 9, of which 2, 5 and 7 are in quarantine."""
    address = str(tmp_path / "table")
    options = SinkOptions.parse({"path": address, "kafka.group.id": "g", "checkpointLocation": "c"})
    rows = [
        {"topic": "t", "partition": 0, "offset": one, "value": b"good"}
        | (
            {COLUMN: {"error_class": "Bad", "error_text": "no number", "value": b"%d" % one}}
            if one in {2, 5, 7}
            else {}
        )
        for one in range(10)
    ]
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    Tables(options).commit(Offset.of([Range("t", 0, 0, 10)]), sorting.close(), normal_schema(SCHEMA), 0)
    return address


def _only(*offsets: int) -> object:
    def repair(rows: pa.Table) -> pa.Table:
        kept = rows.filter(pc.is_in(rows.column("offset"), pa.array(offsets, pa.int64())))
        return kept.select(["topic", "partition", "offset", "value"])

    return repair


def test_what_waits_is_what_the_table_has_not(table: str) -> None:
    """Nothing else is noted, so nothing can be noted wrongly."""
    assert offsets_of(waiting(table, "g")) == [2, 5, 7]


def test_a_repair_may_leave_records_for_later_and_a_second_replay_brings_none_twice(table: str) -> None:
    """Half is repaired today, the rest with the next version of the decoder."""
    assert replay(table, "g", _only(2, 7)) == Replayed(rows=2, left=1)  # type: ignore[arg-type]  # a Repair
    assert replay(table, "g", _only(2, 7)) == Replayed(rows=0, left=1)  # type: ignore[arg-type]  # a Repair
    assert replay(table, "g") == Replayed(rows=1, left=0)
    assert replay(table, "g") == Replayed(rows=0, left=0)
    report = verify(table, accounted={})
    assert (report.rows, report.ok) == (10, True)


def test_two_replays_at_once_bring_each_record_once(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is done between the look and the swap of this one."""
    swap = DeltaLakeTable.swap
    meanwhile = [lambda: replay(table, "g")]

    def slow(self: DeltaLakeTable, snapshot: Snapshot, change: Change) -> None:
        if meanwhile:
            meanwhile.pop()()
        swap(self, snapshot, change)

    monkeypatch.setattr(DeltaLakeTable, "swap", slow)
    assert replay(table, "g") == Replayed(rows=0, left=0)
    assert verify(table, accounted={}).ok


def test_records_of_a_batch_that_is_still_to_come_are_left_to_it(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between quarantine and table: the batch comes again, and a new decoder may find the record good."""
    options = SinkOptions.parse({"path": table, "kafka.group.id": "g", "checkpointLocation": "c"})
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    bad = {"topic": "t", "partition": 0, "offset": 10, COLUMN: {"error_class": "Bad"}}
    sorting.write(pa.RecordBatch.from_pylist([bad], schema=SCHEMA))
    with monkeypatch.context() as patch:
        patch.setattr(DeltaLakeTable, "swap", _fail_for(table))
        with pytest.raises(SchemaError):
            Tables(options).commit(Offset.of([Range("t", 0, 10, 11)]), sorting.close(), normal_schema(SCHEMA), 1)
    assert offsets_of(waiting(table, "g")) == [2, 5, 7]


def _fail_for(table: str) -> object:
    swap = DeltaLakeTable.swap

    def fail(self: DeltaLakeTable, snapshot: Snapshot, change: Change) -> None:
        if self.name == table:
            raise SchemaError("crashed here")
        swap(self, snapshot, change)

    return fail


def test_a_repair_that_makes_records_up_is_refused(table: str) -> None:
    """Also one that hands a record on twice."""
    with pytest.raises(TableError, match="t/0 offset 3"):
        replay(table, "g", lambda rows: rows.slice(0, 1).set_column(2, "offset", pa.array([3], pa.int64())))
    with pytest.raises(TableError, match="t/0 offset 2"):
        replay(table, "g", lambda rows: pa.concat_tables([rows.slice(0, 1)] * 2))


def _quarantine_more(table: str, files: int, compact_every: int = 0) -> None:
    """Add files with two bad records each, from offset 10 on."""
    given = {"path": table, "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": str(compact_every)}
    options = SinkOptions.parse(given)
    tables = Tables(options)
    for number in range(files):
        begin = 10 + 2 * number
        bad = [{"topic": "t", "partition": 0, "offset": begin + n, COLUMN: {"error_class": "Bad"}} for n in range(2)]
        sorting = Sorting(options, normal_schema(SCHEMA), "run")
        sorting.write(pa.RecordBatch.from_pylist(bad, schema=SCHEMA))
        offset = Offset.of([Range("t", 0, begin, begin + 2)])
        tables.commit(offset, sorting.close(), normal_schema(SCHEMA), number + 1)


def test_a_quarantine_is_compacted_and_keeps_each_record(table: str) -> None:
    """A few bad records in each batch make as many small files, and each replay opens all of them."""
    _quarantine_more(table, 8, compact_every=3)
    assert len(DeltaTable(quarantine_of(table)).file_uris()) < 8
    assert offsets_of(waiting(table, "g")) == [2, 5, 7, *range(10, 26)]


def test_a_replay_that_dies_between_two_parts_brings_each_record_once(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarantine may be larger than the memory, so the replay reads and commits a part of it at a time."""
    _quarantine_more(table, 3)
    read: list[int] = []
    sizes: list[int] = []

    def counted(*given: Any) -> Iterator[pa.RecordBatch]:
        for batch in quarantine_records(*given):
            read.append(batch.num_rows)
            yield batch

    def dies(rows: pa.Table) -> pa.Table:
        assert sum(read) == sum(sizes) + rows.num_rows  # nothing is read ahead of its part
        if len(sizes) == 2:
            raise KeyboardInterrupt
        sizes.append(rows.num_rows)
        return as_is(rows, ROWS)

    monkeypatch.setattr("spark_sink.sink.quarantine.quarantine_replay._PART_ROWS", 2)
    monkeypatch.setattr("spark_sink.sink.quarantine.quarantine_replay.quarantine_records", counted)
    with pytest.raises(KeyboardInterrupt):
        replay(table, "g", dies)
    assert replay(table, "g") == Replayed(rows=9 - sum(sizes), left=0)
    assert max(sizes) <= 3
    report = verify(table, accounted={})
    assert (report.rows, report.ok) == (16, True)


def test_conflicts_without_end_are_said_so(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records stay in quarantine, and the next replay brings them in."""

    def busy(*_: object) -> None:
        raise ConflictError

    monkeypatch.setattr(DeltaLakeTable, "swap", busy)
    monkeypatch.setattr("spark_sink.sink.quarantine.quarantine_replay.ATTEMPTS", 3)
    with pytest.raises(TableError, match="run it again"):
        replay(table, "g")


def test_a_record_that_is_in_quarantine_twice_is_found_and_repaired(table: str) -> None:
    """The promise is one place for each offset, so `verify` counts both places."""
    address = quarantine_of(table)
    rows = DeltaTable(address).to_pyarrow_table()
    write_deltalake(address, rows.filter(pc.equal(rows.column("offset"), 5)), mode="append")
    report = verify(table)
    assert (report.ok, report.duplicates, report.missing) == (False, 1, 0)
    assert report.findings[0].quarantine_doubles == ((5, 6),)
    assert [one.rows for one in repair(table)] == [0, 1]
    assert verify(table).ok


@pytest.mark.parametrize("milliseconds", [1_700_000_000_000_000, -62_135_596_800_001])
def test_a_record_of_any_time_is_shown(table: str, milliseconds: int) -> None:
    """A producer may write microseconds as milliseconds; Python's calendar ends with the year 9999."""
    (address, at) = (quarantine_of(table), milliseconds * 1000)
    rows = DeltaTable(address).to_pyarrow_table()
    times = pc.if_else(pc.equal(rows.column("offset"), 5), at, 0).cast(pa.timestamp("us", tz="UTC"))
    rows = rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", times)
    write_deltalake(address, rows, mode="overwrite")
    register(app)
    run = CliRunner().invoke
    shown = run(app, ["quarantine", "show", table]).output
    assert [line.strip() for line in shown.splitlines() if "timestamp:" in line] == [
        "timestamp: 1970-01-01T00:00:00+00:00",
        f"timestamp: {at}",
        "timestamp: 1970-01-01T00:00:00+00:00",
    ]
    found = json.loads(run(app, ["quarantine", "show", table, "--offset", "5", "--json"]).output)
    assert [one["timestamp"] for one in found] == [at]
    assert found[0]["ingested_at"].endswith("+00:00")


@pytest.mark.parametrize("lacking", ["topic", "partition", "offset"])
@pytest.mark.parametrize("kind", ["minValues", "maxValues"])
def test_a_second_replay_finds_records_in_files_that_lack_a_bound(table: str, lacking: str, kind: str) -> None:
    """Another program joined the files, and its statistics leave out columns or long texts."""
    assert replay(table, "g").rows == 3
    _join_files(table, lacking, kind)
    _join_files(quarantine_of(table), lacking, kind)
    assert replay(table, "g") == Replayed(rows=0, left=0)
    assert verify(table).ok
    published = Quarantine.of(table)
    assert published is not None
    assert offsets_of(published.above({TopicPartition("t", 0): 3}, "g")) == [5, 7]


def _join_files(address: str, lacking: str, kind: str) -> None:
    handle = DeltaTable(address)
    rows, new = handle.to_pyarrow_table(), Path(address) / "joined.parquet"
    pq.write_table(rows, new)
    bounds = {name: pc.min_max(rows.column(name)).as_py() for name in ("topic", "partition", "offset")}
    statistics = {
        "numRecords": rows.num_rows,
        "minValues": {name: one["min"] for name, one in bounds.items()},
        "maxValues": {name: one["max"] for name, one in bounds.items()},
        "nullCount": dict.fromkeys(bounds, 0),
    }
    del statistics[kind][lacking]
    files = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
    handle.create_write_transaction(
        [
            *(RemoveAction(one["path"], False, 0, one["size_bytes"], {}) for one in files),  # noqa: FBT003 -- no data changes
            AddAction(new.name, new.stat().st_size, {}, 0, False, json.dumps(statistics)),  # noqa: FBT003 -- no data changes
        ],
        "append",
        handle.schema(),
        [],
        commit_properties=CommitProperties(max_commit_retries=0),
    )


def test_a_quarantine_that_spark_rewrote_is_read_and_replayed(table: str) -> None:
    """Spark stores times as INT96, and a producer's wrong time is after 2262, where nanoseconds end."""
    (address, at) = (quarantine_of(table), 1_700_000_000_000_000_000)
    rows = DeltaTable(address).to_pyarrow_table()
    times = pa.array([at] * rows.num_rows, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    rows = rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", times)
    write_deltalake(address, rows, mode="overwrite")
    rewrite_as_spark(address)
    found = pa.concat_tables(waiting(table, "g"))
    assert (offsets_of([found]), set(found.column("timestamp").cast(pa.int64()).to_pylist())) == ([2, 5, 7], {at})
    published = Quarantine.of(table)
    assert published is not None
    assert offsets_of(published.above({}, "g")) == [2, 5, 7]
    assert replay(table, "g") == Replayed(rows=3, left=0)
    assert verify(table, accounted={}).ok


def test_the_command_lists_shows_and_replays(table: str) -> None:
    """The steps of a person, in this order."""
    if not any(group.name == "quarantine" for group in app.registered_groups):
        register(app)
    run = CliRunner().invoke
    assert "3  t  Bad" in run(app, ["quarantine", "list", table]).output
    shown = run(app, ["quarantine", "show", table, "--offset", "5"]).output
    assert "t/0 offset 5: Bad: no number" in shown
    assert "value: 5" in shown
    assert "3 records replayed, 0 still wait" in run(app, ["quarantine", "replay", table]).output
    assert "0 records wait" in run(app, ["quarantine", "list", table]).output
    failed = run(app, ["quarantine", "replay", table, "--repair", "no.such:thing"]).exception
    assert isinstance(failed, OptionError)


def test_a_repair_that_fails_is_one_sentence_with_its_line(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function is the user's: the message has its error and line, without our own frames."""
    (tmp_path / "fails_on_purpose.py").write_text("def repair(records):\n    return records['no such column']\n")
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    if not any(group.name == "quarantine" for group in app.registered_groups):
        register(app)
    failed = run(app, ["quarantine", "replay", table, "--repair", "fails_on_purpose:repair"]).exception
    assert isinstance(failed, OptionError)
    assert "the records of this part stay in quarantine: KeyError: " in str(failed)
    assert str(failed).endswith("(fails_on_purpose.py, line 2)")
    shown = run(app, ["quarantine", "show", table, "--topic", "none"])
    assert (shown.exit_code, shown.output) == (0, f"{table}: no such record waits in quarantine\n")
