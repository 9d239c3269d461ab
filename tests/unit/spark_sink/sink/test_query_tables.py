"""From the rows of tasks to the tables of a query, good rows and bad."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from spark_sink import positions
from spark_sink.errors import OptionError, SchemaError, TableError
from spark_sink.formats.bad_values_quarantined import COLUMN, REASON, good_schema
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake import delta_table
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.table_kinds import warehouse

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("delay", pa.int64()),
        pa.field(COLUMN, REASON),
    ]
)


def _options(root: Path, **more: str) -> SinkOptions:
    shared = {"path": str(root / "table"), "kafka.group.id": "g", "checkpointLocation": str(root / "checkpoint")}
    return SinkOptions.parse({**shared, **more})


def _batch(topic: str, offsets: Iterable[int], bad: Mapping[int, str] | None = None) -> pa.RecordBatch:
    reasons = bad or {}
    rows = [
        {
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "delay": offset * 2,
            COLUMN: {"error_class": "JSONDecodeError", "error_text": reasons[offset], "value": b"{", "schema_id": 7}
            if offset in reasons
            else None,
        }
        for offset in offsets
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _land(options: SinkOptions, tables: Tables, number: int, *batches: pa.RecordBatch, end: int) -> None:
    sorting = Sorting(options, normal_schema(SCHEMA), "run-1")
    for batch in batches:
        sorting.write(batch)
    begins = {batch["topic"][0].as_py(): batch["offset"][0].as_py() for batch in batches}
    offset = Offset.of(Range(topic, 0, begin, end) for topic, begin in begins.items())
    tables.commit(offset, sorting.close(), normal_schema(SCHEMA), number)


def test_bad_rows_go_to_the_quarantine_with_their_reason(tmp_path: Path) -> None:
    """And the table has the good ones, without the column that tells them apart; verify accounts for both."""
    options = _options(tmp_path)
    _land(options, Tables(options), 0, _batch("t", range(5), {3: "Expecting property name"}), end=5)
    table = DeltaTable(str(tmp_path / "table")).to_pyarrow_table()
    assert table.column_names == ["topic", "partition", "offset", "timestamp", "delay"]
    assert sorted(table["offset"].to_pylist()) == [0, 1, 2, 4]
    (bad,) = DeltaTable(quarantine_of(str(tmp_path / "table"))).to_pyarrow_table().to_pylist()
    assert (bad["offset"], bad["error_class"], bad["value"], bad["schema_id"]) == (3, "JSONDecodeError", b"{", 7)
    assert (bad["error_text"], bad["run_id"], bad["headers"]) == ("Expecting property name", "run-1", None)
    assert bad["ingested_at"] is not None
    assert verify(str(tmp_path / "table")).ok


def test_a_crash_between_quarantine_and_table_repeats_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bad rows are in, the good ones are not yet; the same batch comes again from another process."""
    options = _options(tmp_path)
    tables = Tables(options)
    _land(options, tables, 0, _batch("t", range(2)), end=2)
    with monkeypatch.context() as patch:
        patch.setattr("spark_sink.lake.delta_table.DeltaLakeTable.swap", _crash_on(str(tmp_path / "table")))
        with pytest.raises(KeyboardInterrupt):
            _land(options, tables, 1, _batch("t", range(2, 6), {4: "bad"}), end=6)
    assert positions(str(tmp_path / "table"), "g") == {("t", 0): 2}
    for number in (1, 1):
        _land(options, Tables(options), number, _batch("t", range(2, 6), {4: "bad"}), end=6)
    assert DeltaTable(quarantine_of(str(tmp_path / "table"))).to_pyarrow_table()["offset"].to_pylist() == [4]
    report = verify(str(tmp_path / "table"))
    assert (report.rows, report.ok) == (5, True)


def _crash_on(table: str) -> object:
    from spark_sink.lake.delta_table import DeltaLakeTable  # noqa: PLC0415 -- as it is before the patch

    swap = DeltaLakeTable.swap

    def crash(self: DeltaLakeTable, *arguments: object) -> None:
        if self.name == table:
            raise KeyboardInterrupt
        swap(self, *arguments)  # type: ignore[arg-type]  # passed on as they came

    return crash


def test_bad_rows_far_apart_leave_no_hole_in_the_quarantine(tmp_path: Path) -> None:
    """Its positions jump from bad row to bad row."""
    options = _options(tmp_path)
    tables = Tables(options)
    for number, bad in enumerate([{1: "a"}, {}, {}, {13: "b"}]):
        _land(options, tables, number, _batch("t", range(number * 4, number * 4 + 4), bad), end=number * 4 + 4)
    assert DeltaTable(quarantine_of(str(tmp_path / "table"))).to_pyarrow_table()["offset"].to_pylist() == [13, 1]
    assert verify(str(tmp_path / "table")).ok


@pytest.mark.parametrize("restarted", [False, True])
def test_rows_of_a_batch_without_new_records_are_refused(tmp_path: Path, *, restarted: bool) -> None:
    """A window ends, and a query with state passes its rows on; they would be left out as a replay."""
    options, tables = _options(tmp_path), Tables(_options(tmp_path))
    log = tmp_path / "checkpoint" / "offsets"
    log.mkdir(parents=True)
    for number in (0, 1):
        (log / str(number)).write_text(f"v1\n{{}}\n{Offset.of([Range('t', 0, 0, 5)]).json()}\n")
    _land(options, tables, 0, _batch("t", range(3)), end=5)
    tables.commit(Offset.of([Range("t", 0, 0, 5)]), {}, normal_schema(SCHEMA), 1)
    if restarted:
        tables = Tables(options)
    with pytest.raises(TableError, match=r"batch 1 has no new records, so its 2 rows are of earlier batches"):
        _land(options, tables, 1, _batch("t", [0, 4]), end=5)
    _land(options, Tables(options), 0, _batch("t", range(3)), end=5)
    assert DeltaTable(str(tmp_path / "table")).to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_topics_go_to_their_tables(tmp_path: Path, form: str) -> None:
    """Each table has the positions of its topics; together they are the positions for the source."""
    storage = warehouse(tmp_path) if form == "iceberg" else {}
    place = "iceberg://lake.default." if storage else f"{tmp_path}/"
    options = _options(tmp_path, path=f"{place}raw_{{topic}}", routes=f'{{"rare[.].*": "{place}rare"}}', **storage)
    tables = Tables(options)
    topics = {"raw_a": ["a"], "raw_b": ["b"], "rare": ["rare.x", "rare.y"]}
    names = [name for own in topics.values() for name in own]
    for number in range(3):
        batches = [_batch(name, range(number * 3, number * 3 + 3)) for name in names]
        _land(options, tables, number, *batches, end=number * 3 + 3)
    for table, own in topics.items():
        report = verify(f"{place}{table}", "g", storage)
        assert (sorted(one.topic for one in report.findings), report.rows, report.ok) == (own, 9 * len(own), True)
    assert positions(f"{place}raw_{{topic}}", "g", storage) == {("a", 0): 9, ("b", 0): 9}
    both = f'["{place}raw_{{topic}}", "{place}rare"]'
    assert positions(both, "g", storage) == {(name, 0): 9 for name in names}


def test_positions_of_a_table_for_each_topic_are_none_before_the_first(tmp_path: Path) -> None:
    """The folder that would hold them is not there either."""
    assert positions(f"{tmp_path}/none/raw_{{topic}}", "g") == {}
    with pytest.raises(OptionError, match="last part"):
        positions(f"{tmp_path}/{{topic}}/raw", "g")


def test_small_files_are_joined_and_nothing_is_lost(tmp_path: Path) -> None:
    """Every tenth version here; positions stay as they are."""
    options = _options(tmp_path, compactEvery="10")
    tables = Tables(options)
    for number in range(24):
        _land(options, tables, number, _batch("t", range(number * 2, number * 2 + 2)), end=number * 2 + 2)
    assert len(DeltaTable(str(tmp_path / "table")).file_uris()) < 12
    report = verify(str(tmp_path / "table"))
    assert (report.rows, report.ok) == (48, True)
    assert positions(str(tmp_path / "table"), "g") == {("t", 0): 48}


def test_the_first_batch_makes_the_table_even_without_a_partition(tmp_path: Path) -> None:
    """So that later a missing table means a deleted one."""
    options = _options(tmp_path)
    Tables(options).commit(Offset(), {}, normal_schema(SCHEMA), 0)
    assert DeltaTable.is_deltatable(str(tmp_path / "table"))
    (tmp_path / "table").rename(tmp_path / "gone")
    with pytest.raises(TableError, match="at batch 3"):
        Tables(options).commit(Offset(), {}, normal_schema(SCHEMA), 3)


def _plan(root: Path, number: int, offset: Offset) -> None:
    """Write the offset of a batch as Spark does."""
    (root / "checkpoint/offsets").mkdir(parents=True, exist_ok=True)
    (root / "checkpoint/offsets" / str(number)).write_text(f"v1\n{{}}\n{offset.json()}\n")


@pytest.mark.parametrize("listed", range(-1, 3))
def test_a_table_whose_newest_versions_are_listed_late_is_no_deleted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    """A process that goes on with the query waits for them: no position is missing, no record, no bad row."""
    options, table = _options(tmp_path), str(tmp_path / "table")
    for number in range(3):
        _plan(tmp_path, number, Offset.of([Range("t", 0, number * 2, number * 2 + 2)]))
        _land(
            options, Tables(options), number, _batch("t", (number * 2, number * 2 + 1), {2: "bad"}), end=number * 2 + 2
        )
    looks: list[str] = []

    class Late(DeltaTable):
        def __init__(self, uri: str, **more: Any) -> None:
            late = uri == table and len(looks) < 4
            if late:
                looks.append("opened")
            if late and listed < 0:
                raise TableNotFoundError(uri)
            super().__init__(uri, version=listed if late else None, **more)

        def update_incremental(self) -> None:
            if self.table_uri.rstrip("/").endswith("_quarantine") or len(looks) >= 4:
                super().update_incremental()
            else:
                looks.append("updated")

    monkeypatch.setattr(delta_table, "DeltaTable", Late)
    _land(options, Tables(options), 3, _batch("t", range(6, 9)), end=9)
    assert len(looks) == 4
    assert positions(table, "g") == {("t", 0): 9}
    report = verify(table)
    assert (report.rows, report.ok) == (8, True)  # and one in the quarantine


@pytest.mark.parametrize("again", ["deleted", "made anew", "another group"])
def test_a_table_of_a_topic_that_was_deleted_between_two_runs_stops_the_query(tmp_path: Path, again: str) -> None:
    """With the group's offsets it would continue in an empty table, and the loss of the old rows would be hidden."""
    path = f"{tmp_path}/raw_{{topic}}"
    batches = [Offset.of([Range("a", 0, at, at + 3), Range("b", 0, at, at + 3)]) for at in (0, 3)]
    for number, offset in enumerate(batches):
        _plan(tmp_path, number, offset)
    _land(_options(tmp_path, path=path), Tables(_options(tmp_path, path=path)), 0, *_pair(0), end=3)
    if again != "another group":
        (tmp_path / "raw_a").rename(tmp_path / "gone")
    if again == "made anew":
        write_deltalake(f"{tmp_path}/raw_a", good_schema(SCHEMA).empty_table())
    options = _options(tmp_path, path=path, **({"kafka.group.id": "h"} if again == "another group" else {}))
    with pytest.raises(TableError, match=r"raw_[ab]: it knows nothing of [ab]/0 and group"):
        _land(options, Tables(options), 1, *_pair(3), end=6)


def test_a_topic_that_goes_to_another_table_from_now_on_goes_on_there(tmp_path: Path) -> None:
    """That one knows nothing of it either, but the table before does: nothing was deleted."""
    _plan(tmp_path, 0, Offset.of([Range("a", 0, 0, 3)]))
    _land(_options(tmp_path), Tables(_options(tmp_path)), 0, _batch("a", range(3)), end=3)
    options = _options(tmp_path, routes=f'{{"a": "{tmp_path}/of_a"}}')
    _land(options, Tables(options), 1, _batch("a", range(3, 6)), end=6)
    assert DeltaTable(f"{tmp_path}/of_a").to_pyarrow_table()["offset"].to_pylist() == [3, 4, 5]


@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_that_the_former_table_of_a_topic_has_is_refused(tmp_path: Path, number: int) -> None:
    """A crash after the commit, then other routes: Spark repeats the batch, and its records would be in two tables."""
    before, begin = _options(tmp_path), number * 3
    for one in range(number + 1):
        at, end = one * 3, one * 3 + 3
        _plan(tmp_path, one, Offset.of([Range("a", 0, at, end)]))
        _land(before, Tables(before), one, _batch("a", range(at, end)), end=end)
    options = _options(tmp_path, routes=f'{{"a": "{tmp_path}/of_a"}}')
    with pytest.raises(TableError, match=rf"of_a: a/0 was written to .*/table up to offset {begin + 3}, and batch"):
        _land(options, Tables(options), number, _batch("a", range(begin, begin + 3)), end=begin + 3)
    assert positions(f"{tmp_path}/of_a", "g") == {}
    _land(options, Tables(options), 0, _batch("a", range(begin + 3, begin + 6)), end=begin + 6)
    assert DeltaTable(f"{tmp_path}/of_a").to_pyarrow_table()["offset"].to_pylist() == list(range(begin + 3, begin + 6))


def _pair(begin: int) -> list[pa.RecordBatch]:
    return [_batch(name, range(begin, begin + 3)) for name in ("a", "b")]


@pytest.mark.parametrize("stamp", [2**62, -(2**62), -62_135_596_800_000_000, 253_402_300_800_000_000])
def test_a_time_that_no_calendar_has_stops_nothing(tmp_path: Path, stamp: int) -> None:
    """A producer that counts microseconds where Kafka counts milliseconds is in the year 55000."""
    options = _options(tmp_path)
    batch = _batch("t", range(3))
    times = pa.array([stamp, 0, 1_700_000_000_000_000], pa.int64()).cast(batch.schema.field("timestamp").type)
    _land(options, Tables(options), 0, batch.set_column(3, batch.schema.field(3), times), end=3)
    table = DeltaTable(str(tmp_path / "table"))
    assert table.to_pyarrow_table()["timestamp"].cast(pa.int64()).to_pylist() == [stamp, 0, 1_700_000_000_000_000]
    earlier = table.to_pyarrow_table(filters=[("timestamp", "<=", datetime(1970, 1, 1, tzinfo=UTC))])
    assert earlier.num_rows == 1 + (stamp < 0)


def test_a_column_of_the_name_timestamp_may_be_anything(tmp_path: Path) -> None:
    """A query may have made a number or a date of it; the history then has no age."""
    for number, kind in enumerate([pa.int64(), pa.string(), pa.date32(), pa.timestamp("us")]):
        schema = SCHEMA.set(3, pa.field("timestamp", kind))
        options = _options(tmp_path, path=str(tmp_path / str(number)))
        batch = _batch("t", range(3))
        values = (
            pa.array([number, None, 5], pa.int32()).cast(pa.int64() if kind != pa.date32() else pa.int32()).cast(kind)
        )
        sorting = Sorting(options, normal_schema(schema), "run-1")
        sorting.write(pa.RecordBatch.from_arrays([*batch.columns[:3], values, *batch.columns[4:]], schema=schema))
        Tables(options).commit(Offset.of([Range("t", 0, 0, 3)]), sorting.close(), normal_schema(schema), 0)
        assert verify(str(tmp_path / str(number))).rows == 3


def test_a_reason_of_another_shape_is_refused() -> None:
    """A column of that name from another program."""
    with pytest.raises(SchemaError, match=COLUMN):
        good_schema(pa.schema([pa.field(COLUMN, pa.string())]))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mergeSchema": "yes"}, "option 'mergeSchema': 'yes', need true or false"),
        ({"compactEvery": "-1"}, "option 'compactEvery'"),
        ({"compactEvery": "9" * 5_000}, "option 'compactEvery'"),
        ({"partitionBy": "topic, topic"}, "'topic, topic' has a column twice"),
        ({"path": "x" * 300}, "option 'path': .*is not the name of a folder.*too long"),
        ({"path": "a\0b"}, "option 'path': 'a\\\\x00b' is not the name of a folder"),
        ({"routes": '{"a": "/t", "a": "/u"}'}, "option 'routes': 'a' is there twice"),
        ({"routes": '{"a": " "}'}, "option 'routes': 'a' has no address"),
        ({"routes": '{"a{99999999999}": "/t"}'}, "option 'routes': .*repetition number"),
        ({"routes": "[" * 10_000}, "option 'routes': .*is not JSON"),
        ({"kafka.group.id": " g"}, "'kafka.group.id': ' g' begins with a space"),
        ({"pathh": "x"}, "has no option 'pathh'"),
        ({"path": ""}, "needs the option 'path'"),
        ({"kafka.group.id": ""}, r"needs the option 'kafka\.group\.id'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_options_without_meaning_are_refused(tmp_path: Path, options: dict[str, str], says: str) -> None:
    """Before anything is read."""
    with pytest.raises(OptionError, match=says):
        _options(tmp_path, **options)


def test_options_of_the_source_are_passed_over(tmp_path: Path) -> None:
    """Both sides of a query may be given the same map; storage and table options keep their case."""
    options = _options(
        tmp_path,
        **{
            "subscribe": "t",
            "storage.AWS_REGION": "eu",
            "tableProperty.delta.appendOnly": "true",
            "partitionBy": "topic",
        },
    )
    assert options.storage == {"AWS_REGION": "eu"}
    assert options.table.properties == {"delta.appendOnly": "true"}
    assert options.table.layout.partition_columns == ("topic",)
