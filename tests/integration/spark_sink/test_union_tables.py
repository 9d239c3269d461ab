"""The union and `azimuth query` over more than one table, over Iceberg tables, and over records of a registry."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from spark_sink import positions, union
from spark_sink.cli._app import app
from spark_sink.cli.query import register
from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    wait_until,
)
from tests.integration.spark_sink.fleet.test_registry_values import FORMATS, Format
from tests.integration.spark_sink.formats.registry_server import Server

pytestmark = [pytest.mark.integration, pytest.mark.long]

TOPICS, STORED, UNREAD = 3, 5, 2

Value = Callable[[int], bytes]


class Lake:
    """A fleet with a table for each topic.

    Args:
        format_: of the tables.
        root: an empty folder.
        name: of the fleet; its topics begin with it.
        cluster: the brokers.
    """

    def __init__(self, format_: str, root: Path, name: str, cluster: Cluster) -> None:
        self.name, self.servers = name, cluster.bootstrap_servers
        self.topics = [f"{name}.t{number}" for number in range(TOPICS)]
        self.storage: dict[str, str] = {}
        self.address, self._more = f"{root}/lake/home/{{topic}}", ""
        table = f"{root}/lake/{{cluster}}/{{topic}}"
        if format_ == "iceberg":
            self.storage = {"catalog.warehouse": str(root / "warehouse")}
            self.address, table = "iceberg://lake.home.{topic}", "lake.{cluster}.{topic}"
            self._more = f'table_format = "iceberg"\ncatalog = {{ warehouse = "{root}/warehouse" }}\n'
        self._text = config(name, root, cluster, f"{self._more}VALUES").replace(f"{root}/lake/{{cluster}}", table)
        self._root = root

    def write(self, value: Value, values: str = "") -> None:
        """Let an agent write some records of each topic, and produce more after it has ended."""
        make_topics(self.servers, self.topics)
        with FleetProcesses(self._root, self._text.replace("VALUES", values)) as fleet:
            fleet.start("a")
            self._produce(value, range(STORED))
            wait_until(self._arrived, 120, "all records in the tables", lambda: fleet.log("a"))
            assert fleet.stop() == {"a": 0}
        self._produce(value, range(STORED, STORED + UNREAD))

    def _arrived(self) -> bool:
        return sum(positions(self.address, self.name, self.storage).values()) == TOPICS * STORED

    def _produce(self, value: Value, numbers: range) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, "log_level": 0})
        for topic in self.topics:
            for number in numbers:
                producer.produce(topic, value(number), partition=0)
        assert producer.flush(30) == 0

    def query(self, sql: str, *options: str) -> list[dict[str, object]]:
        """Ask the command."""
        if not any(command.name == "query" for command in app.registered_commands):
            register(app)
        words = ["query", sql, "--table", self.address, "--bootstrap-servers", self.servers, "--json", *options]
        words += [word for name, text in self.storage.items() for word in ("--storage", f"{name}={text}")]
        answer = CliRunner().invoke(app, words, catch_exceptions=False)
        return [json.loads(line) for line in answer.output.splitlines()]


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, cluster: Cluster) -> Lake:
    """A fleet of each format."""
    return Lake(request.param, tmp_path, f"fleet-{uuid.uuid4().hex[:8]}", cluster)


def test_tables_of_a_fleet_are_one_answer_with_each_record_once(lake: Lake) -> None:
    """In every table some records, and some that it lacks: by the union and by the command."""
    lake.write(lambda number: b"%d" % number)
    everything = [(topic, number) for topic in lake.topics for number in range(STORED + UNREAD)]
    found = union(lake.address, lake.servers, options=lake.storage).read_all()
    assert sorted(zip(found["topic"].to_pylist(), found["offset"].to_pylist(), strict=True)) == everything
    rows = lake.query('SELECT topic, "offset" FROM records ORDER BY ALL')
    assert [(row["topic"], row["offset"]) for row in rows] == everything
    assert lake.query("SELECT count(*) AS n FROM unread") == [{"n": TOPICS * UNREAD}]
    [twice] = lake.query("SELECT count(*) AS n FROM (FROM records UNION ALL FROM records)")
    assert twice["n"] == 2 * len(everything)
    delete_topics(lake.servers, lake.topics)


@pytest.mark.parametrize(
    "form",
    [pytest.param(one, id=one.name, marks=pytest.mark.slow if one.name == "protobuf" else ()) for one in FORMATS],
)
def test_records_of_a_registry_get_the_columns_of_the_table(lake: Lake, form: Format) -> None:
    """With the registry that the agents ask; a record that cannot be decoded is left out, as from the table."""

    def value(number: int) -> bytes:
        return form.encode[0](1, {"id": number}) if number % 5 else b"poison"

    with Server() as server:
        assert server.register("flights-value", form.texts[0], form.kind) == 1
        given = f'schema_registry = {{ url = "{server.url}" }}\nvalue_subject = "flights-value"\n'
        lake.write(value, f'value_format = "{form.name}"\n{given}')
        options = {"valueFormat": form.name, "schema.registry.url": server.url, "valueSubject": "flights-value"}
        rows = union(
            lake.address, lake.servers, options={**lake.storage, **options}, columns=["topic", "id"]
        ).read_all()
        flags = [word for name, text in options.items() for word in ("--option", f"{name}={text}")]
        asked = lake.query("SELECT topic, id FROM records ORDER BY ALL", *flags)
    expected = [(topic, number) for topic in lake.topics for number in range(STORED + UNREAD) if number % 5]
    assert sorted((row["topic"], row["id"]) for row in rows.to_pylist()) == expected
    assert [(row["topic"], row["id"]) for row in asked] == expected
    delete_topics(lake.servers, lake.topics)
