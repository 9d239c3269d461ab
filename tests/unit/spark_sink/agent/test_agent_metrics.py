"""Numbers of an agent, taken from the table's log."""

import itertools
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry

from assignors.clients import BrokerRacks, Received
from spark_sink.agent.agent_metrics import Metrics, lags, serve
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.commit_notes import History, Notes
from spark_sink.errors import OptionError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fetch.received_files import ReceivedFile
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.ranges.lag_seconds import UnreadAges
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from spark_sink.source.ownership_telemetry import AssignmentFile
from spark_sink.source.received_traffic import QueryTraffic

SCHEMA = arrow_schema(headers=False)
ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def _commit(path: Path, begin: int, end: int, agent: str) -> None:
    landing = Landing(filesystem(str(path), make=True), SCHEMA)
    rows = [
        {"topic": "t", "partition": 0, "offset": one, "timestamp": 1_700_000_000_000_000} for one in range(begin, end)
    ]
    landing.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    offset = Offset.of([Range("t", 0, begin, end)])
    commit(
        DeltaLakeTable(str(path), "g"),
        Batch(offset=offset, files=landing.close(), schema=SCHEMA, number=1, agent=agent),
    )


def _value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_commits_are_counted_from_the_log_as_it_grows(tmp_path: Path) -> None:
    """Only commits after the first read count, so that a restarted agent begins at zero."""
    _commit(tmp_path, 0, 5, "one")
    history, registry = History(str(tmp_path)), CollectorRegistry()
    metrics = Metrics(registry)
    assert list(history.read()) == []
    _commit(tmp_path, 5, 9, "one")
    _commit(tmp_path, 7, 12, "one")
    notes = list(history.read())
    for note in notes:
        metrics.committed(note)
    assert [(note["agent"], note["rows"], note["rows_left_out"]) for note in notes] == [("one", 4, 0), ("one", 3, 2)]
    assert (_value(registry, "azimuth_rows_total"), _value(registry, "azimuth_rows_left_out_total")) == (7, 2)
    assert (_value(registry, "azimuth_freshness_seconds") or 0) > 1_000_000
    assert list(history.read()) == []


def test_tables_made_later_are_counted_from_their_first_commit(tmp_path: Path) -> None:
    """With a table for each topic, the first rows of a new topic are in the numbers, and no other agent's."""
    _commit(tmp_path / "flights-old", 0, 5, "one")
    table = str(tmp_path / "flights-{topic}")
    settings = {"bootstrap_servers": "b:1", "group": "g", "table": table, "checkpoint": "c", "subscribe": "t"}
    notes = Notes(AgentSettings.load(None, {**settings, "agent": "one"}))
    assert list(notes.read()) == []
    _commit(tmp_path / "flights-old", 5, 6, "one")
    _commit(tmp_path / "flights-new", 0, 9, "one")
    _commit(tmp_path / "flights-new", 9, 11, "two")
    assert sorted(note["rows"] for note in notes.read()) == [1, 9]
    assert list(notes.read()) == []


def test_quarantine_is_counted_apart() -> None:
    """Its rows are not rows of the table."""
    registry = CollectorRegistry()
    Metrics(registry).committed({"kind": "quarantine", "rows": 3, "agent": "one", "conflicts": 1})
    assert _value(registry, "azimuth_quarantined_total") == 3
    assert _value(registry, "azimuth_rows_total") == 0
    assert _value(registry, "azimuth_commit_conflicts_total") == 1


def test_seconds_of_lag_are_the_age_of_the_oldest_unread_record() -> None:
    """A busy topic that is always seven records behind is fractions of a second late, and not since the agent began."""
    now = [100.0]
    ages, registry = UnreadAges(clock=lambda: now[0]), CollectorRegistry()
    metrics = Metrics(registry, clock=lambda: now[0])
    seen = []
    for end in range(500, 360_500, 500):
        now[0] += 5
        metrics.lagging(lags({ONE: end - 7, OTHER: 5}, {ONE: end}, ages))
        seen.append(_value(registry, "azimuth_lag_seconds", topic=ONE.topic))
    assert seen[1:] == [pytest.approx(0.07)] * 719
    assert _value(registry, "azimuth_lag_records", topic=ONE.topic) == 7


def test_what_the_reader_holds_shows_at_the_next_look(tmp_path: Path) -> None:
    """Rebalances show as a rising generation, and an agent that has nothing to read holds partitions all the same."""
    registry, file = CollectorRegistry(), AssignmentFile(tmp_path / "holding")
    Metrics(registry, file.read)

    def look() -> tuple[float | None, float | None]:
        return _value(registry, "azimuth_generation"), _value(registry, "azimuth_partitions")

    seen = [look()]
    for holding in (
        Assignment(generation=7, partitions=frozenset({ONE, OTHER})),
        Assignment(generation=8, partitions=frozenset({OTHER})),
    ):
        file.note(holding, {})
        seen.append(look())
    file.left()
    assert [*seen, look()] == [(-1, 0), (7, 2), (8, 1), (-1, 0)]


def test_received_bytes_are_counted_by_topic_and_zone(tmp_path: Path) -> None:
    """What the tasks note, once each; a zone that becomes known later gets only what comes after that."""
    registry, racks = CollectorRegistry(), dict[int, str | None]()
    metrics, file = Metrics(registry), ReceivedFile(tmp_path)
    traffic = QueryTraffic(tmp_path, {"client.rack": "az-a"})
    traffic._racks = BrokerRacks({}, lambda: racks, itertools.count(0, 100).__next__)

    def value(zone: str) -> float | None:
        return _value(registry, "azimuth_received_bytes_total", topic="t", zone=zone)

    file.add({("t", 1): Received(2, 20)})
    metrics.received(traffic.fresh())
    racks[1] = "az-b"
    file.add({("t", 1): Received(1, 10)})
    metrics.received(traffic.fresh())
    metrics.received(traffic.fresh())
    assert (value("unknown"), value("az-b")) == (20, 10)
    assert _value(registry, "azimuth_received_records_total", topic="t", zone="az-b") == 1
    assert traffic.read().cross == (3, 30)


def test_a_topic_that_is_gone_is_shown_no_more() -> None:
    """Its number would look like one of now, and the names of years would pile up; a leader's election is no end."""
    now = [100.0]
    registry = CollectorRegistry()
    metrics = Metrics(registry, clock=lambda: now[0])
    seen = []
    for moment, topics in [(100.0, {"t": 5, "u": 1}), (150.0, {"u": 1}), (161.0, {"u": 1}), (170.0, {"t": 2, "u": 1})]:
        now[0] = moment
        metrics.lagging({topic: (records, records / 2) for topic, records in topics.items()})
        seen.append([_value(registry, f"azimuth_lag_{name}", topic="t") for name in ("records", "seconds")])
    assert seen == [[5, 2.5], [5, 2.5], [None, None], [2, 1]]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """The error is one sentence with the remedy; the server is read-only."""
    given = {"bootstrap_servers": "127.0.0.1:1", "group": "g", "table": str(tmp_path / "t"), "checkpoint": "c"}
    with socket.create_server(("0.0.0.0", 0)) as taken:  # noqa: S104 - as the endpoint does
        port = taken.getsockname()[1]
        settings = AgentSettings.load(None, {**given, "subscribe": "t", "metrics_port": port})
        with pytest.raises(OptionError, match=f"metrics_port {port}: Address already in use; name another"):
            serve(settings, tmp_path / "holding", tmp_path)
    ended = serve(settings, tmp_path / "holding", tmp_path)
    try:
        address = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:  # noqa: S310 - our own server
            assert "azimuth_rows_total 0.0" in answer.read().decode()
        for path, method in (("/metrics", "POST"), ("/etc/passwd", "GET")):
            request = urllib.request.Request(address + path, method=method)  # noqa: S310 - our own server
            with pytest.raises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(request, timeout=5)  # noqa: S310 - our own server
            raised.value.close()
            assert raised.value.code in {404, 501}
    finally:
        ended.set()
