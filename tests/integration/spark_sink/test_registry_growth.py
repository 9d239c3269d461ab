"""A field that the subject's schema gets while a sink runs becomes a column, without a restart."""

import io
import json
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from fastavro import parse_schema, schemaless_writer

from spark_sink import union
from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.formats.registry_server import Server
from tests.integration.spark_sink.tied import kill, launch, tree
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.matrix]

FIRST: dict[str, Any] = {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "gate", "type": ["null", "string"], "default": None}]}
CONFIG = """
bootstrap_servers = "{servers}"
group = "{name}"
subscribe = "{name}"
checkpoint = "{root}/checkpoint"
master = "local[1]"
{table}
[source]
valueFormat = "avro"
"schema.registry.url" = "{registry}"
valueSubject = "flights-value"
[sink]
mergeSchema = "true"
"""


def _avro(schema: Mapping[str, Any], number: int, schema_id: int) -> bytes:
    target = io.BytesIO()
    schemaless_writer(target, parse_schema(dict(schema)), {"id": number, "gate": f"g{number}"})
    return struct.pack(">BI", 0, schema_id) + target.getvalue()


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_new_field_of_the_registry_is_a_column_while_the_sink_runs(
    cluster: Cluster, topic: Callable[..., str], producer: Producer, tmp_path: Path, format_: str
) -> None:
    """The sink asks the registry once a minute; no record with the field is lost meanwhile, and the process stays."""
    name = topic("t")
    address, storage, table = f"{tmp_path}/table", {}, f'table = "{tmp_path}/table"'
    if format_ == "iceberg":
        address, storage = "iceberg://lake.raw.events", {"catalog.warehouse": f"{tmp_path}/warehouse"}
        table = (
            f'table = "lake.raw.events"\ntable_format = "iceberg"\ncatalog = {{ warehouse = "{tmp_path}/warehouse" }}'
        )
    sent = 0

    def put(schema: Mapping[str, Any], schema_id: int) -> None:
        nonlocal sent
        producer.produce(name, _avro(schema, sent, schema_id), partition=0)
        assert producer.flush(30) == 0
        sent += 1

    def rows() -> list[dict[str, Any]]:
        try:
            report = verify(address, name, storage)
        except Exception:  # noqa: BLE001 -- there is no table yet
            return []
        assert (report.duplicates, report.missing) == (0, 0)
        options = {**storage, "valueFormat": "avro", "schema.registry.url": server.url, "valueSubject": "flights-value"}
        found = union(address, cluster.bootstrap_servers, options=options).read_all()
        return found.to_pylist() if report.rows == sent else []

    with Server() as server:
        first = server.register("flights-value", json.dumps(FIRST), "AVRO")
        put(FIRST, first)
        config, log = tmp_path / "sink.toml", tmp_path / "log"
        given = {"servers": cluster.bootstrap_servers, "name": name, "root": tmp_path, "table": table}
        config.write_text(CONFIG.format(**given, registry=server.url))
        process = launch([sys.executable, "-m", "spark_sink", "sink", "--config", str(config)], log)
        try:
            wait_until(lambda: len(rows()) == 1, 180, lambda: f"the first row: {log.read_text()[-3000:]}")
            second = server.register("flights-value", json.dumps(SECOND), "AVRO")

            def is_column() -> bool:
                put(SECOND, second)
                wait_until(lambda: len(rows()) == sent, 120, lambda: f"all rows: {log.read_text()[-3000:]}")
                return max(rows(), key=lambda row: row["id"]).get("gate") == f"g{sent - 1}"

            wait_until(is_column, 180, lambda: f"a column: {log.read_text()[-3000:]}")
            assert process.poll() is None
        finally:
            kill(tree(process.pid))
            process.wait()
