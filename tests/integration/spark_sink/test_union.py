"""The union of tables and Kafka on real brokers: rows of the table, then the records that it lacks."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deltalake import DeltaTable
from typer.testing import CliRunner

from assignors.fleet import FleetTopic
from spark_sink import positions, union
from spark_sink.cli._app import app
from spark_sink.cli.query import register
from spark_sink.demo.cluster import Cluster
from spark_sink.errors import DataLossError, FetchError, OptionError, SchemaError
from spark_sink.fetch.range_reader import fetch
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.kafka.partition_offsets import PartitionOffsets
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.delta_sink import SinkWriter
from spark_sink.sink.sink_options import SinkOptions
from tests.integration.spark_sink.fleet.fleet_process import FleetProcesses, config, wait_until

pytestmark = pytest.mark.integration

MakeTopic = Callable[..., str]


def _put(producer: Producer, topic: str, *values: bytes | str, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def _commit(  # noqa: PLR0913, PLR0917 -- as an agent is given them
    cluster: Cluster, topic: str, begin: int, end: int, options: dict[str, str], more: Mapping[str, str] | None = None
) -> None:
    """Commit a range of partition 0 as an agent does, by a new process; `more` are options of the source."""
    both = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": "g", "subscribe": topic}
    source = SourceOptions.parse({**both, **(more or {})})
    logs = PartitionOffsets(source)
    identities = logs.identities([topic])
    logs.close()
    given = {"kafka.group.id": "g", "checkpointLocation": options["path"] + "-checkpoint", **options}
    parsed = SinkOptions.parse(given)
    rows = list(fetch([Range(topic, 0, begin, end)], source.fetch, keep=False))
    checkpoint = Path(given["checkpointLocation"].removeprefix("file://")) / topic / str(begin)
    (checkpoint / "offsets").mkdir(parents=True)
    offset = Offset.of([Range(topic, 0, begin, end)], identities)
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{offset.json()}")
    parsed = SinkOptions.parse({**given, "checkpointLocation": str(checkpoint)})
    writer = SinkWriter(parsed, rows[0].schema)
    writer.commit([writer.write(iter(rows))], 0)


def _values(reader: pa.RecordBatchReader) -> list[bytes]:
    return sorted(reader.read_all().column("value").to_pylist())


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Options of a sink and of the union, for each format."""
    if request.param == "delta":
        yield {"path": str(tmp_path / "table")}
    else:
        warehouse = {"tableFormat": "iceberg", "catalog.warehouse": str(tmp_path / "warehouse")}
        yield {"path": "lake.raw.events", **warehouse, "checkpointLocation": str(tmp_path / "checkpoint")}


def _union(cluster: Cluster, sink: dict[str, str], **more: object) -> pa.RecordBatchReader:
    options = {name: text for name, text in sink.items() if name.startswith("catalog.")}
    return union(sink["path"], cluster.bootstrap_servers, options=options, **more)  # type: ignore[arg-type]


def test_rows_come_before_the_records_that_the_table_lacks(
    cluster: Cluster, topic: MakeTopic, producer: Producer, sink: dict[str, str]
) -> None:
    """With a partition that the table does not know yet, and columns in another order."""
    name = topic("t", partitions=2)
    _put(producer, name, b"a", b"b", b"c")
    _commit(cluster, name, 0, 2, sink)
    _put(producer, name, b"d", partition=1)
    found = _union(cluster, sink).read_all()
    assert found.column("value").to_pylist()[:2] == [b"a", b"b"]
    assert sorted(found.column("value").to_pylist()[2:]) == [b"c", b"d"]
    assert _union(cluster, sink, columns=["offset", "value"]).schema.names == ["offset", "value"]
    with pytest.raises(SchemaError, match="there is no column 'x'; known are topic, partition"):
        _union(cluster, sink, columns=["x"])


def test_tables_by_topic_and_a_topic_without_a_table(
    cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """`{topic}` in the address; a topic without rows is read from the beginning of its log, if it is named."""
    names = [topic(one) for one in ("a", "b", "c")]
    for name in names:
        _put(producer, name, name, f"{name}+")
    address = f"{tmp_path}/lake/{{topic}}"
    with pytest.raises(OptionError, match="name them with 'topics'"):
        union(address, cluster.bootstrap_servers)
    assert _values(union(address, cluster.bootstrap_servers, topics=names[:1])) == [
        one.encode() for one in (names[0], f"{names[0]}+")
    ]
    for name in names[:2]:
        _commit(cluster, name, 0, 1, {"path": address})
    wanted = sorted(one.encode() for name in names for one in (name, f"{name}+"))
    assert _values(union(address, cluster.bootstrap_servers, topics=names)) == wanted


def test_columns_that_only_an_option_adds_are_read_if_the_table_has_them(
    cluster: Cluster, topic: MakeTopic, producer: Producer, sink: dict[str, str]
) -> None:
    """Headers, and who set the timestamp."""
    name = topic("t")
    _put(producer, name, b"a", b"b")
    _commit(cluster, name, 0, 1, sink, {"includeHeaders": "true", "includeTimestampType": "true"})
    found = _union(cluster, sink).read_all()
    assert found.column("timestampType").to_pylist() == [0, 0]
    assert found.column("headers").to_pylist() == [None, None]


def test_decoded_records_get_the_columns_of_the_table(
    cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """Records that cannot be decoded are left out, as from the table; columns come from the table by default."""
    name, path = topic("t"), tmp_path / "lake" / "home"
    schema = '{"id": "bigint", "at": "timestamp"}'
    values = f"value_format = \"json\"\nvalue_schema = '{schema}'"
    _put(producer, name, *(json.dumps({"id": one, "at": "2026-01-02T03:04:05Z"}) for one in range(5)), b"{")
    file = config("union-json", tmp_path, cluster, values).replace("union-json[.].*", name.replace(".", "[.]"))
    with FleetProcesses(tmp_path, file) as fleet:
        fleet.start("a")
        wait_until(lambda: _position(path, name) == 6, 120, "a commit", lambda: fleet.log("a"))
        assert fleet.stop() == {"a": 0}
    _put(producer, name, json.dumps({"id": 6, "more": 1}), b"poison", json.dumps({"id": 8}))
    for options in ({"valueFormat": "json"}, {"valueFormat": "json", "valueSchema": schema}):
        found = union(str(path), cluster.bootstrap_servers, options=options).read_all()
        assert sorted(found.column("id").to_pylist()) == [0, 1, 2, 3, 4, 6, 8]
        assert '{"more":1}' in [str(one).replace(" ", "") for one in found.column("_rescued").to_pylist()]
    with pytest.raises(SchemaError, match="the table has the column 'id', which its records do not give"):
        union(str(path), cluster.bootstrap_servers).read_all()
    computed = union(str(path), cluster.bootstrap_servers, columns=["id"], transform=_ids).read_all()
    assert sorted(computed.column("id").to_pylist()) == [-8, -7, -6, 0, 1, 2, 3, 4]


def _position(path: Path, topic: str) -> int:
    known = positions(str(path), "union-json") if DeltaTable.is_deltatable(str(path)) else {}
    return known.get(TopicPartition(topic, 0), 0)


def _ids(rows: pa.Table) -> pa.Table:
    return pa.table({"id": [-one for one in rows.column("offset").to_pylist()]})


def test_a_recreated_topic_and_another_cluster_are_refused(
    cluster: Cluster, admin: AdminClient, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    """Its offsets mean other records."""
    name, path = topic("t"), str(tmp_path / "table")
    _put(producer, name, b"a", b"b")
    _commit(cluster, name, 0, 2, {"path": path})
    admin.delete_topics([name])[name].result(30)
    wait_until(lambda: name not in admin.list_topics(timeout=10).topics, 30, "the topic is gone")
    with pytest.raises(FetchError, match=rf"it has none of the topics of the table, such as {name}"):
        union(path, cluster.bootstrap_servers)
    wait_until(lambda: _made(admin, name), 30, "the topic is made again")
    _put(Producer({"bootstrap.servers": cluster.bootstrap_servers}), name, b"x", b"y", b"z")
    with pytest.raises(DataLossError, match=f"{name}: the topic was deleted and recreated"):
        union(path, cluster.bootstrap_servers)


def test_a_fleet_goes_on_with_a_recreated_topic_and_so_does_the_union(
    cluster: Cluster, admin: AdminClient, topic: MakeTopic, producer: Producer, sink: dict[str, str]
) -> None:
    """Rows of the later topic have another name in the table; one such topic made the union of all topics fail."""
    name = topic("t")
    _put(producer, name, b"a", b"b", b"c")
    _write_as_fleet(cluster, name, 3, sink)
    admin.delete_topics([name])[name].result(30)
    wait_until(lambda: name not in admin.list_topics(timeout=10).topics, 30, "the topic is gone")
    wait_until(lambda: _made(admin, name), 30, "the topic is made again")
    later = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    _put(later, name, b"x", b"y")
    with pytest.raises(DataLossError, match=f"{name}: the topic was deleted and recreated"):
        _union(cluster, sink)
    label = _write_as_fleet(cluster, name, 1, sink)
    found = _union(cluster, sink).read_all()
    assert sorted(found.column("value").to_pylist()) == [b"a", b"b", b"c", b"x", b"y"]
    assert Counter(found.column("topic").to_pylist()) == {name: 3, label: 2}


def _write_as_fleet(cluster: Cluster, topic: str, end: int, sink: dict[str, str]) -> str:
    """Write the first records of partition 0 as an agent of a fleet does; return their name in the table."""
    source = SourceOptions.parse(
        {"kafka.bootstrap.servers": cluster.bootstrap_servers, "kafka.group.id": "g", "subscribe": topic}
    )
    logs = PartitionOffsets(source)
    identity = logs.identities([topic])[topic]
    logs.close()
    cluster_id, _, number = identity.partition("/")
    own = FleetTopic(cluster_id, number, topic, "home")
    storage = {name: text for name, text in sink.items() if name.startswith("catalog.")}
    address = f"iceberg://{sink['path']}" if storage else sink["path"].removeprefix("file://")
    writer = TableWriter(address, "g", "a", storage)
    label = writer.label([own])[own]
    rows = pa.Table.from_batches(fetch([Range(topic, 0, 0, end)], source.fetch, keep=False))
    rows = rows.set_column(0, "topic", pa.array([label] * end, pa.string()))
    writer.commit(writer.land(_Records(rows), {label}), [Range(label, 0, 0, end)])
    return label


@dataclass(frozen=True)
class _Records:
    """Records that an agent holds."""

    held: pa.Table

    def rows(self, _only: set[str]) -> pa.Table:
        """All of them."""
        return self.held


def _made(admin: AdminClient, name: str) -> bool:
    return admin.create_topics([NewTopic(name, 1, 1)])[name].exception(30) is None


def test_the_command_answers_over_both(cluster: Cluster, topic: MakeTopic, producer: Producer, tmp_path: Path) -> None:
    """A table may be asked several times in one statement, and `unread` has only what it lacks."""
    name, path = topic("t"), str(tmp_path / "table")
    _put(producer, name, b"a", b"b", b"c")
    _commit(cluster, name, 0, 2, {"path": path})
    if not any(command.name == "query" for command in app.registered_commands):
        register(app)
    common = ["--table", path, "--bootstrap-servers", cluster.bootstrap_servers]
    twice = "SELECT count(*) AS n, max(value) AS last FROM (FROM records UNION ALL FROM records)"
    answer = CliRunner().invoke(app, ["query", twice, *common, "--json"], catch_exceptions=False)
    assert json.loads(answer.output) == {"n": 6, "last": "c"}
    shown = CliRunner().invoke(app, ["query", 'SELECT "offset", value FROM unread', *common]).output
    assert shown.split() == ["offset", "value", "2", "c"]
    only = CliRunner().invoke(
        app, ["query", "FROM unread", *common, "--column", "value", "--column", "offset", "--json"]
    )
    assert json.loads(only.output) == {"value": "c", "offset": 2}
    with pytest.raises(OptionError, match=r"DuckDB refuses the query: .*nothing"):
        CliRunner().invoke(app, ["query", "SELECT nothing FROM records", *common], catch_exceptions=False)
