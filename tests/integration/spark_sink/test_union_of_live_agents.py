"""The union of a table and Kafka while agents commit and die: every acknowledged record once."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Producer
from typer.testing import CliRunner

from spark_sink import positions, union
from spark_sink.cli._app import app
from spark_sink.cli.query import register
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.matching_tables import has_placeholder, matching_tables
from spark_sink.lake.table_formats import open_table
from spark_sink.ranges.batch_offset import TopicPartition
from tests.integration.spark_sink.fleet.fleet_process import FleetProcesses, config, make_topics, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.long]

PARTITIONS, LOOKS = 3, 10
BY_COMMAND, HALF_READ = 2, 5  # looks; the others read a union at once
COLUMNS = ["topic", "partition", "offset"]


class _Acknowledged:
    """A producer in a thread, and how many of its records are acknowledged."""

    def __init__(self, servers: str, topics: list[str]) -> None:
        self.acknowledged = self.sent = 0
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0})
        self._topics, self._ended = topics, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            for _ in range(50):
                self.sent += 1
                topic = self._topics[self.sent % len(self._topics)]
                self._producer.produce(topic, b'{"id":%d}' % self.sent, on_delivery=self._note)
            self._producer.poll(0.02)
        assert self._producer.flush(60) == 0

    def _note(self, error: KafkaError | None, _: object) -> None:
        assert error is None
        self.acknowledged += 1


def _live_fleet(name: str, root: Path, cluster: Cluster) -> tuple[str, str, dict[str, str]]:
    """The file of a fleet, its table and the options of a union with it."""
    _, lake, values, *several = name.split("-")
    each = "/{topic}" if several else ""
    json_values = 'value_format = "json"\nvalue_schema = \'{"id": "bigint"}\'\n' if values == "json" else ""
    decoding = {"valueFormat": "json"} if values == "json" else {}
    place = f"{root}/lake/{{cluster}}"
    if lake == "delta":
        text = config(name, root, cluster, json_values).replace(place, place + each)
        return text, f"{root}/lake/home{each}", decoding
    catalog = f'table_format = "iceberg"\ncatalog = {{ warehouse = "{root}/warehouse" }}\n'
    table = "lake.{cluster}.{topic}" if several else "lake.raw.{cluster}"
    text = config(name, root, cluster, catalog + json_values).replace(place, table)
    return (
        text,
        f"iceberg://{table.replace('{cluster}', 'home')}",
        {"catalog.warehouse": f"{root}/warehouse", **decoding},
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("union-delta-raw", marks=pytest.mark.slow),
        pytest.param("union-iceberg-json", marks=pytest.mark.slow),
        pytest.param("union-delta-json", marks=pytest.mark.slow),
        pytest.param("union-iceberg-raw", marks=pytest.mark.slow),
        pytest.param("union-delta-raw-tables", marks=pytest.mark.slow),
        "union-iceberg-json-tables",
    ],
)
def test_each_acknowledged_record_is_there_once_while_agents_commit_and_die(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """Two agents read the topics, which have one table or one each.

    One of the agents is killed and started between two looks, and while a union is half read: then the other one goes
    on, and the tables are compacted and lose the versions that were opened. Another look is that of the command.
    """
    topics = [f"{name}.t{number}" for number in range(1 + name.endswith("tables"))]
    make_topics(cluster.bootstrap_servers, topics, PARTITIONS)
    text, table, options = _live_fleet(name, tmp_path, cluster)

    def committed() -> dict[TopicPartition, int]:
        return positions(table, name, options)

    with (
        FleetProcesses(tmp_path, text) as fleet,
        _Acknowledged(cluster.bootstrap_servers, topics) as producer,
    ):
        fleet.start("a", "b")
        wait_until(lambda: len(committed()) == len(topics) * PARTITIONS, 120, "the tables", lambda: fleet.log("a"))
        for look in range(LOOKS):
            before = committed()
            wait_until(partial(_moved, committed, before), 120, "a commit", lambda: fleet.log("a"))
            least = producer.acknowledged
            found = union(table, cluster.bootstrap_servers, topics=topics, columns=COLUMNS, options=options)
            if look == BY_COMMAND:
                rows = _queried(table, cluster.bootstrap_servers, topics, options)
            elif look == HALF_READ:
                first = found.read_next_batch()
                fleet.kill("a")
                fleet.start("a")
                for own in matching_tables(table, options) if has_placeholder(table) else [table]:
                    wait_until(_compaction(own, name, options), 120, f"a compaction of {own}", lambda: fleet.log("b"))
                rows = pa.Table.from_batches([first, *found])
            else:
                rows = found.read_all()
            most = producer.sent
            places = Counter(zip(*(rows.column(column).to_pylist() for column in COLUMNS), strict=True))
            assert set(places.values()) == {1}, "a record is there twice"
            partitions = Counter((topic, partition) for topic, partition, _ in places)
            assert places.keys() == {(*one, at) for one, count in partitions.items() for at in range(count)}
            assert least <= rows.num_rows <= most
            if look % 3 == 1:
                fleet.kill("ab"[look % 2])
                fleet.start("ab"[look % 2])


def _moved(committed: Callable[[], object], before: object) -> bool:
    return committed() != before


def _compaction(address: str, group: str, options: dict[str, str]) -> Callable[[], bool]:
    """Return what compacts a table, and expires an Iceberg table's snapshots, when it has some commits more."""
    handle = open_table(address, group, options)
    first = handle.refresh()
    assert first is not None

    def compacted() -> bool:
        now = handle.refresh()
        return now is not None and now.version > first.version + 3 and handle.compact(4)

    return compacted


def _queried(table: str, servers: str, topics: list[str], options: dict[str, str]) -> pa.Table:
    """Ask the command."""
    if not any(command.name == "query" for command in app.registered_commands):
        register(app)
    words = ["query", 'SELECT topic, partition, "offset" FROM records', "--table", table, "--json"]
    words += ["--bootstrap-servers", servers, *(word for topic in topics for word in ("--topic", topic))]
    for name, text in options.items():
        words += ["--storage" if name.startswith("catalog.") else "--option", f"{name}={text}"]
    answer = CliRunner().invoke(app, words, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return pa.Table.from_pylist([json.loads(line) for line in answer.stdout.splitlines()])
