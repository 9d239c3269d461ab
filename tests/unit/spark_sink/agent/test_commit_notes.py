"""The counts of an agent of Spark for its ops log, from the logs of its tables."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_sink import positions
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.commit_notes import NoteCounts, Noted, Notes
from spark_sink.errors import OptionError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.landing import IcebergLanding
from spark_sink.lake.ops_log.ops_counts import OpsCounts
from spark_sink.lake.ops_log.ops_table import OpsTable
from spark_sink.lake.ops_log.ops_writer import OpsWriter
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_contract import DataFile, Span
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit, rows_by_topic
from spark_sink.sink.sink_options import SinkOptions
from tests.table_kinds import Place

SCHEMA = arrow_schema(headers=False)
NEEDED = {"bootstrap_servers": "b:1", "group": "g", "checkpoint": "c", "subscribe": "t"}


class Logs:
    """Notes that a test adds."""

    def __init__(self) -> None:
        self.new: list[Noted] = []
        self.error: Exception | None = None

    def add(self, table: str, **topics: tuple[int, int, int]) -> None:
        """Commit rows by topic."""
        self.new.append((table, {"kind": "table", "topics": topics}))

    def read(self) -> Iterator[Noted]:
        """The notes since the last call."""
        if self.error is not None:
            raise self.error
        taken, self.new = self.new, []
        yield from taken


def by_topic(rows: list[dict[str, Any]]) -> Mapping[str | None, tuple[int, int, int, int]]:
    """Batches, rows, quarantined rows and bytes."""
    return {one["topic"]: (one["batches"], one["rows"], one["quarantined"], one["bytes"]) for one in rows}


def test_commits_are_counted_by_topic_once() -> None:
    """Notes without topics are those of commits before the ops log was turned on, of replays and of compactions."""
    logs = Logs()
    counts = NoteCounts(OpsCounts(), logs.read)
    counts.begin()
    logs.add("lake/a", a=(5, 1, 50))
    logs.add("lake/a", a=(4, 0, 40), b=(3, 0, 30), idle=(0, 0, 0))
    logs.new += [("lake/a", {"kind": "table", "rows": 9}), ("lake/a", {"kind": "compaction", "rows": 0})]
    assert by_topic(counts.take()) == {"a": (2, 9, 1, 90), "b": (1, 3, 0, 30)}
    assert counts.take() == []


def test_a_log_that_cannot_be_read_loses_no_count_and_raises_only_in_the_writer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The start of the query must not wait for it, nor end with it."""
    logs = Logs()
    logs.error = TableError("the store is away")
    counts = NoteCounts(OpsCounts(), logs.read)
    counts.begin()
    writer = OpsWriter(counts, OpsTable(str(tmp_path / "ops")), 60.0, {"kind": "spark", "group_id": "g", "agent": "a"})
    writer.write()
    writer.write()
    assert caplog.text.count("the store is away") == 1
    logs.error = None
    logs.add("lake/a", a=(5, 1, 50))
    counts.failed((), OptionError("the query ended"))
    writer.write()
    found = DeltaTable(str(tmp_path / "ops")).to_pyarrow_table().to_pylist()
    assert {(one["topic"], one["rows"], one["errors"], one["kind"]) for one in found} == {
        ("a", 5, 0, "spark"),
        (None, 0, 1, "spark"),
    }


def test_the_commits_of_the_agent_reach_the_ops_log_through_the_log_of_its_table(tmp_path: Path) -> None:
    """The way of a query without Spark: a commit with topics, the table's log, the counts; no other agent's rows."""
    address = str(tmp_path / "t")
    settings = AgentSettings.load(None, {**NEEDED, "table": address, "agent": "one", "ops_log": str(tmp_path / "ops")})
    counts = NoteCounts(OpsCounts(), Notes(settings).by_table)
    counts.begin()
    for agent, begin, end in (("one", 0, 5), ("two", 5, 9), ("one", 9, 12)):
        landing = Landing(filesystem(address, make=True), SCHEMA)
        rows = [{"topic": "a", "partition": 0, "offset": at, "timestamp": 1} for at in range(begin, end)]
        landing.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
        offset = Offset.of([Range("a", 0, begin, end)])
        batch = Batch(offset=offset, files=landing.close(), schema=SCHEMA, number=1, agent=agent, by_topic=True)
        commit(DeltaLakeTable(address, "g"), batch)
    (found,) = counts.take()
    assert (found["topic"], found["batches"], found["rows"], found["table_uri"]) == ("a", 2, 8, address)
    assert found["bytes"] > 0


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_rows_of_a_route_are_counted_with_those_of_the_other_tables(tmp_path: Path, form: str) -> None:
    """The log, the metrics and the ops log would be without these rows, and the metrics without the topics' lag."""
    place = Place(tmp_path, form)

    def named(table: str) -> str:
        return place.address(table).removeprefix("iceberg://")

    catalog = {name.removeprefix("catalog."): text for name, text in place.storage.items()}
    given = {"table": named("rest_{topic}"), "table_format": form, "catalog": catalog, "agent": "one"}
    routes = {"orders.*": named("orders"), "logs": named("log_{topic}")}
    settings = AgentSettings.load(None, {**NEEDED, **given, "sink": {"Routes": json.dumps(routes)}})
    notes = Notes(settings)
    assert not list(notes.by_table())
    for number, (topic, table) in enumerate([("orders_a", "orders"), ("logs", "log_logs"), ("b", "rest_b")], start=1):
        address = place.address(table)
        written: IcebergTable | DeltaLakeTable
        landing: IcebergLanding | Landing
        if form == "iceberg":
            written = IcebergTable(address, "g", place.storage)
            written.create(SCHEMA)
            landing = written.landing(SCHEMA)
        else:
            written = DeltaLakeTable(address, "g")
            landing = Landing(filesystem(address, make=True), SCHEMA)
        rows = [{"topic": topic, "partition": 0, "offset": at, "timestamp": 1} for at in range(number)]
        landing.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
        offset = Offset.of([Range(topic, 0, 0, number)])
        commit(written, Batch(offset=offset, files=landing.close(), schema=SCHEMA, number=1, agent="one"))
    assert {table: note["rows"] for table, note in notes.by_table() if note["kind"] == "table"} == {
        place.address("orders"): 1,
        place.address("log_logs"): 2,
        place.address("rest_b"): 3,
    }
    found = positions(settings.tables, "g", settings.table_storage)
    assert {key.topic: at for key, at in found.items()} == {"orders_a": 1, "logs": 2, "b": 3}


def test_a_file_of_several_topics_is_divided_by_rows() -> None:
    """Quarantined rows count, and apart."""

    def file(size: int, **rows: int) -> DataFile:
        spans = {TopicPartition(topic, 0): Span(0, count - 1, count) for topic, count in rows.items()}
        return DataFile(path="f", size_bytes=size, spans=spans)

    found = rows_by_topic([file(100, a=3, b=1), file(10, a=1)], [file(40, a=4)])
    assert found == {"a": (8, 4, 125), "b": (1, 0, 25)}


def test_only_an_agent_with_an_ops_log_writes_topics_into_the_history() -> None:
    """The notes of hundreds of topics would be in every commit otherwise."""
    for given, expected in (({}, False), ({"ops_log": "/ops"}, True)):
        settings = AgentSettings.load(None, {**NEEDED, "table": "/lake/t", **given})
        assert SinkOptions.parse(settings.sink_options()).topic_notes is expected
        assert (settings.ops is not None) is expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table": "/lake/{topic}", "ops_log": "/lake/ops"}, "at, above or below an address of the tables"),
        ({"table": "/lake/t", "ops_log": "/lake/t"}, "at, above or below an address of the tables"),
        ({"table": "/lake/t", "ops_log": "/ops/{topic}"}, "one for all topics"),
    ],
)
def test_an_ops_log_in_the_way_of_a_table_is_refused(given: dict[str, str], said: str) -> None:
    """Before the query starts."""
    with pytest.raises(OptionError, match=said):
        _ = AgentSettings.load(None, {**NEEDED, **given}).ops


@pytest.mark.parametrize("given", [{"ops_log_s": 0.5}, {"ops_log_days": 0}])
def test_times_of_an_ops_log_that_cannot_be_are_refused(given: dict[str, float]) -> None:
    """With the name of the setting."""
    with pytest.raises(OptionError, match=next(iter(given))):
        AgentSettings.load(None, {**NEEDED, "table": "/lake/t", "ops_log": "/ops", **given})
