"""A table that exists with the name of another table's quarantine is neither written nor rewound as one."""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from assignors.fleet import FleetTopic
from spark_sink.cli._app import app
from spark_sink.cli.quarantine import register
from spark_sink.errors import OptionError, SchemaError, SparkSinkError, TableError
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.unwritten_records import RecordBuffer
from spark_sink.formats.bad_values_quarantined import COLUMN
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.double_row_removal import repair
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import normal_schema
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink import topic_routes
from spark_sink.sink.quarantine.quarantine_replay import replay
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.rewind.delta_rewind import rewind
from spark_sink.sink.rows_by_table import Sorting
from spark_sink.sink.sink_options import SinkOptions
from tests.landed_offsets import landed_offsets
from tests.raw_rows import SCHEMA


def _commit(path: str, topic: str, begin: int, bad: Collection[int]) -> None:
    """Five offsets."""
    options = SinkOptions.parse({"path": path, "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"})
    sorting = Sorting(options, normal_schema(SCHEMA), "run")
    rows = [
        {"topic": topic, "partition": 0, "offset": one, "value": b"v"}
        | ({COLUMN: {"error_class": "Bad", "error_text": "x", "value": b"v"}} if one in bad else {})
        for one in range(begin, begin + 5)
    ]
    sorting.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    Tables(options).commit(Offset.of([Range(topic, 0, begin, begin + 5)]), sorting.close(), normal_schema(SCHEMA), 0)


def _made_before(root: Path, topics: list[str]) -> None:
    """Make tables as a version did that did not refuse their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_routes, "refuse_quarantine_name", lambda *_: None)
        for topic in topics:
            _commit(str(root / "{topic}"), topic, 0, ())


def test_a_topic_whose_name_can_be_no_table_is_named(tmp_path: Path) -> None:
    """Legal names for Kafka; an agent said only that a file name is too long, or that it lost against other writers."""
    path = str(tmp_path / "{topic}")
    with pytest.raises(OptionError, match=r"'_delta_log' would go to .* folder of Delta's own; send this topic"):
        _commit(path, "_delta_log", 0, ())
    with pytest.raises(OptionError, match="name of its quarantine would be longer than 255 bytes; send this topic"):
        _commit(path, "t" * 245, 0, ())
    _commit(path, "t" * 244, 0, [1])
    assert landed_offsets(tmp_path / ("t" * 244)) == [0, 2, 3, 4]


def test_a_topic_with_the_name_of_a_quarantine_writes_nothing(tmp_path: Path) -> None:
    """The bad rows of topic `a` and the good rows of `a_quarantine` would be in one table."""
    path = str(tmp_path / "{topic}")
    with pytest.raises(OptionError, match=r"'a_quarantine' would go to .*; nothing was written there: .*'routes'"):
        _commit(path, "a_quarantine", 0, ())
    assert not list(tmp_path.iterdir())
    _commit(path, "a", 0, {2})
    assert landed_offsets(tmp_path / "a_quarantine") == [2]
    assert verify(str(tmp_path / "a")).ok


@pytest.mark.parametrize("mixed", [False, True], ids=["its own columns", "columns of a quarantine"])
def test_an_existing_table_of_a_topic_is_not_taken_for_a_quarantine(tmp_path: Path, *, mixed: bool) -> None:
    """Bad rows would get into it, and a rewind would take out its own."""
    path = str(tmp_path / "{topic}")
    if mixed:  # the quarantine was made first, and then the topic was written to it
        _commit(path, "a", 0, {2})
    else:
        _made_before(tmp_path, ["a"])
    _made_before(tmp_path, ["a_quarantine"])
    before = DeltaTable(tmp_path / "a_quarantine").version(), DeltaTable(tmp_path / "a").version()
    with pytest.raises(TableError, match=r"a_quarantine: the bad records of .*/a belong here, but this is the table"):
        _commit(path, "a", 5, {6})
    for apply in (False, True):
        with pytest.raises(TableError, match="this is the table of another topic"):
            rewind(str(tmp_path / "a"), "g", apply=apply)
    assert before == (DeltaTable(tmp_path / "a_quarantine").version(), DeltaTable(tmp_path / "a").version())


def test_another_program_s_table_at_the_address_of_a_quarantine_is_named(tmp_path: Path) -> None:
    """The columns that it lacks look like a fault of the query if the message does not say whose they are."""
    table = str(tmp_path / "t")
    write_deltalake(quarantine_of(table), pa.table({"x": [1]}))
    with pytest.raises(SchemaError, match=r"/t_quarantine: this table has no records of topics: column 'topic'"):
        _commit(table, "t", 0, {2})


def test_commands_refuse_the_address_of_a_quarantine_and_name_its_table(tmp_path: Path) -> None:
    """A rewind of the quarantine alone set its position back, and a later commit added a bad row again."""
    table = str(tmp_path / "t")
    _commit(table, "t", 0, {2})
    quarantine = f"{quarantine_of(table)}/"
    for name, command in (
        ("rewind", lambda: rewind(quarantine, apply=True)),
        ("repair", lambda: list(repair(quarantine))),
        ("quarantine replay", lambda: replay(quarantine, "g")),
    ):
        with pytest.raises(SparkSinkError, match=rf"is the quarantine of {table}, .*`azimuth {name} {table}`"):
            command()
    register(app)
    for one in ("list", "show", "replay"):
        found = CliRunner().invoke(app, ["quarantine", one, quarantine])
        assert f"is the quarantine of {table}" in str(found.exception)
    alone = tmp_path / "u_quarantine"
    (tmp_path / "t").rename(tmp_path / "away")
    (tmp_path / "t_quarantine").rename(alone)
    assert list(repair(str(alone)))


def test_a_fleet_refuses_only_the_topic_whose_table_would_be_a_quarantine(tmp_path: Path) -> None:
    """Topics of other tables continue; `apart` must not fail, because it is about all of them."""
    with pytest.raises(OptionError, match="a name that does not end in _quarantine"):
        TableWriter(str(tmp_path / "t_quarantine"), "g", "a")
    writer = TableWriter(str(tmp_path / "{topic}"), "g", "a")
    assert writer.apart(["x", "x_quarantine"]) == [{"x"}, {"x_quarantine"}]
    for name in ("x", "y_quarantine"):
        topic = FleetTopic("c", "AAAAAAAAAAAAAAAAAAAAAQ", name, "s", 1)
        if name == "x":
            assert writer.label([topic]) == {topic: "x"}
            continue
        for call in (
            lambda topic=topic: writer.label([topic]),
            lambda: writer.positions({"y_quarantine"}),
            lambda: writer.land(RecordBuffer(), {"y_quarantine"}),
        ):
            with pytest.raises(OptionError, match=r"topic 'y_quarantine' would go to .*lake/\{topic\}/rows"):
                call()
    assert {one.name for one in tmp_path.iterdir()} == {"x"}
