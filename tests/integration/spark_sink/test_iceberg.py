"""Iceberg tables on real brokers: an agent and the commands as people run them, read by DuckDB and pyiceberg."""

import json
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from spark_sink import positions
from spark_sink.cli import main
from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.conftest import MakeTopic
from tests.integration.spark_sink.fleet.fleet_process import delete_topics, make_topics
from tests.integration.spark_sink.test_dead_letter_publisher import messages, texts

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CONFIG = """
bootstrap_servers = "{servers}"
group = "{topic}"
table = "lake.raw.events"
table_format = "iceberg"
checkpoint = "{root}/checkpoint-{run}"
subscribe = "{topic}"
trigger = "available-now"
max_offsets_per_trigger = 16
master = "local[1]"
[catalog]
warehouse = "{root}/warehouse"
[source]
valueFormat = "json"
valueSchema = '{"flight": "string", "delay": "bigint"}'
valueNull = "keep"
[sink]
partitionBy = "topic, day(timestamp), bucket(4, offset)"
"""
REPAIR = """
import pyarrow as pa

def repair(records):
    rows = [row for row in records.to_pylist() if row["error_class"] == "WrongType"]
    kept = ("topic", "partition", "offset", "timestamp", "key")
    return pa.Table.from_pylist(
        [{**{name: row[name] for name in kept}, "flight": "AA7"} for row in rows],
        schema=pa.schema([*map(records.schema.field, kept), ("flight", pa.string())]),
    )
"""
ADDRESS = "iceberg://lake.raw.events"
RECORDS, TOMBSTONE = 40, 12
POISON = {3: b"{", 7: b'{"delay": "late"}', 31: b"\xff\xfe"}
MIDNIGHT = datetime(2026, 2, 1, tzinfo=UTC)
# Appendix B of Iceberg's specification: Murmur3 of the offset as 8 bytes, modulo 4.
BUCKETS = (0, 0, 0, 3, 2, 3, 1, 3, 3, 3, 0, 3, 0, 1, 1, 0, 2, 3, 0, 2)


def _time(number: int) -> datetime:
    """Return the time of a record: an hour apart, and number 20 is the first of its day."""
    return MIDNIGHT + timedelta(hours=number - 20)


class Lake:
    """A topic with two partitions, and the table that agents write of it.

    Args:
        cluster: with the topic.
        root: an empty folder.
        topic: its name, and that of the group.
    """

    def __init__(self, cluster: Cluster, root: Path, topic: str) -> None:
        self.root, self.topic, self.servers = root, topic, cluster.bootstrap_servers
        self.storage = {"catalog.warehouse": str(root / "warehouse")}

    def produce(self) -> None:
        """Write the records: good, poison and a tombstone."""
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(RECORDS):
            value = POISON.get(number, json.dumps({"flight": f"AA{number}", "delay": number}).encode())
            given = None if number == TOMBSTONE else value
            time_ms = int(_time(number).timestamp() * 1000)
            producer.produce(self.topic, given, b"k%d" % number, number % 2, timestamp=time_ms)
        assert producer.flush(60) == 0

    def run(self, run: str) -> None:
        """Run an agent with a checkpoint of its own until the table has all records."""
        given = {"servers": self.servers, "topic": self.topic, "root": str(self.root), "run": run}
        text = CONFIG
        for name, value in given.items():
            text = text.replace(f"{{{name}}}", value)
        config = self.root / "sink.toml"
        config.write_text(text)
        command = [sys.executable, "-m", "spark_sink", "sink", "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]

    def table(self, name: str = "events") -> Table:
        """Return a table as any other reader opens it: pyiceberg, with the default catalog's own properties."""
        database = self.root / "warehouse" / "catalog.db"
        return load_catalog("lake", type="sql", uri=f"sqlite:///{database}").load_table(("raw", name))

    def queried(self, name: str, query: str) -> list[Any]:
        """Query the table's files by DuckDB."""
        files = [task.file.file_path.removeprefix("file://") for task in self.table(name).scan().plan_files()]
        return duckdb.execute(query.format(rows=f"read_parquet({files!r})")).fetchall()

    def positions(self) -> set[int]:
        """Return the positions of the two partitions."""
        found = positions(ADDRESS, self.topic, self.storage)
        assert found.keys() == {(self.topic, 0), (self.topic, 1)}
        return set(found.values())

    def assert_whole(self) -> None:
        """Each record is once in the table or its quarantine."""
        assert self.positions() == {RECORDS // 2}
        rows = self.queried("events", 'select "offset" * 2 + "partition", "key", flight, delay from {rows}')
        good = [(n, b"k%d" % n, f"AA{n}", n) for n in range(RECORDS) if n not in POISON]
        assert sorted(rows) == [row if row[0] != TOMBSTONE else (*row[:2], None, None) for row in good]
        bad = self.queried("events_quarantine", 'select "offset" * 2 + "partition", value from {rows}')
        assert sorted(bad) == sorted(POISON.items())


@pytest.fixture(scope="module")
def lake(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A table with all records, which an agent wrote in batches; a test leaves it so."""
    made = Lake(cluster, tmp_path_factory.mktemp("lake"), f"iceberg-{uuid.uuid4().hex[:6]}.flights")
    make_topics(made.servers, [made.topic], partitions=2, config={"retention.ms": "-1"})  # the records are old
    made.produce()
    made.run("first")
    yield made
    delete_topics(made.servers, [made.topic])


def test_an_agent_lands_decoded_records_and_keeps_the_poison(lake: Lake) -> None:
    """Good records are columns of the table, bad ones wait in quarantine, and a tombstone is a row with its key."""
    lake.assert_whole()


def test_an_agent_partitions_a_table_by_topic_day_and_bucket(lake: Lake) -> None:
    """Readers leave out files by these values, so a wrong one hides rows from a query."""
    found: Counter[tuple[str, date, int]] = Counter()
    for one in lake.table().inspect.partitions().to_pylist():
        values = one["partition"]
        found[values["topic"], values["timestamp_day"], values["offset_bucket"]] += one["record_count"]
    good = [number for number in range(RECORDS) if number not in POISON]
    assert found == Counter((lake.topic, _time(number).date(), BUCKETS[number // 2]) for number in good)
    before = lake.table().scan("timestamp < '2026-02-01T00:00:00+00:00'").to_arrow()
    assert sorted(before["key"].to_pylist()) == sorted(b"k%d" % number for number in good if number < 20)


def test_commands_list_publish_and_replay_bad_records_and_rewind_a_rollback(  # noqa: PLR0913, PLR0917 -- fixtures
    lake: Lake,
    cluster: Cluster,
    topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As people call `azimuth`; then an agent reads again what the rollback took, and nothing is doubled."""
    letters = topic("letters")
    (tmp_path / "repairs_of_flights.py").write_text(REPAIR)
    monkeypatch.chdir(tmp_path)

    def azimuth(*command: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*command, f"--storage=catalog.warehouse={lake.root / 'warehouse'}"])
        said = capsys.readouterr()
        assert (ended.value.code or 0) == code, said
        return said.out + said.err

    def publish() -> str:
        return azimuth("quarantine", "publish", ADDRESS, "--topic", letters, "--bootstrap-servers", lake.servers)

    assert "3 records wait in quarantine" in azimuth("quarantine", "list", ADDRESS)
    shown = json.loads(azimuth("quarantine", "show", ADDRESS, "--partition", "1", "--json"))
    assert [(one["key"], one["error_class"]) for one in shown] == [
        ("k3", "NotJson"),
        ("k7", "WrongType"),
        ("k31", "NotJson"),
    ]
    assert "3 records published" in publish()
    assert [(texts(one)["__connect.errors.offset"], one.value()) for one in messages(cluster, letters)] == [
        (str(number // 2), value) for number, value in POISON.items()
    ]
    replay = ("quarantine", "replay", ADDRESS, "--repair", "repairs_of_flights:repair")
    assert "1 records replayed, 2 still wait" in azimuth(*replay)
    assert "0 records replayed, 2 still wait" in azimuth(*replay)
    mended = lake.table().scan("flight = 'AA7'", selected_fields=("key", "delay")).to_arrow()
    assert mended.to_pylist() == [{"key": b"k7", "delay": None}]
    assert "0 duplicates, 0 missing" in azimuth("verify", ADDRESS)

    first = lake.table().snapshots()[0]
    lake.table().manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert "set the positions back to what the rows hold with `azimuth rewind`" in azimuth("verify", ADDRESS, code=2)
    said = azimuth("rewind", ADDRESS, "--apply")
    assert all(f"{lake.topic}/{partition}: 20 -> 8" in said for partition in (0, 1)), said
    assert "1 bad records from the new positions on were removed" in said
    assert lake.positions() == {8}
    lake.run("second")
    lake.assert_whole()
    assert f"{RECORDS - len(POISON)} rows in 2 partitions, 0 duplicates, 0 missing" in azimuth("verify", ADDRESS)
    assert "3 records wait in quarantine" in azimuth("quarantine", "list", ADDRESS)
    assert "0 records published" in publish()
