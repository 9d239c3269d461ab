"""An agent and a job with claims decode Avro and Protobuf with a registry; poison waits in quarantine, and returns."""

import base64
import io
import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import GetMessageClass

from spark_sink.demo.cluster import Cluster
from spark_sink.formats import AvroDecoder, Decoder, ProtobufDecoder, Registry
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.formats.registry_decoders import latest_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.positions_in_delta_log import positions
from spark_sink.sink.quarantine.quarantine_replay import replay, waiting
from tests.integration.spark_sink.fleet.fleet_process import (
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    wait_until,
)
from tests.integration.spark_sink.formats.registry_server import Server

pytestmark = [pytest.mark.integration, pytest.mark.long]

RECORDS, LATER = 300, 5
"""Every tenth record is poison; so many have a schema that the registry learns only after they were read."""

FIRST = {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "carrier", "type": "string", "default": "none"}]}

Encode = Callable[[int, Mapping[str, Any]], bytes]


@dataclass(frozen=True)
class Format:
    """One format: its schemas as texts, from old to new, and how a record is written with each of them."""

    name: str
    kind: str
    texts: tuple[str, str]
    encode: tuple[Encode, Encode]

    def decoder(self, registry: Registry, subject: str) -> Decoder:
        """As an agent has it."""
        latest = latest_of(registry, subject)
        return AvroDecoder(registry, latest) if self.name == "avro" else ProtobufDecoder(registry, latest, "air.Flight")


def _avro(schema: dict[str, Any]) -> Encode:
    parsed = parse_schema(schema)

    def encode(number: int, record: Mapping[str, Any]) -> bytes:
        target = io.BytesIO()
        schemaless_writer(target, parsed, {name: record[name] for name in ("id", "carrier") if name in record})
        return struct.pack(">BI", 0, number) + target.getvalue()

    return encode


def _file(*names: str) -> descriptor_pb2.FileDescriptorProto:
    found = descriptor_pb2.FileDescriptorProto(name="flight.proto", package="air", syntax="proto3")
    message, kinds = found.message_type.add(name="Flight"), descriptor_pb2.FieldDescriptorProto
    for number, name in enumerate(names, 1):
        kind = kinds.TYPE_INT64 if name == "id" else kinds.TYPE_STRING
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    return found


def _protobuf(file: descriptor_pb2.FileDescriptorProto) -> Encode:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    flight = GetMessageClass(pool.FindMessageTypeByName("air.Flight"))

    def encode(number: int, record: Mapping[str, Any]) -> bytes:
        known = {one.name for one in file.message_type[0].field}
        message = flight(**{name: value for name, value in record.items() if name in known})
        payload: bytes = message.SerializeToString()
        return struct.pack(">BI", 0, number) + b"\x00" + payload

    return encode


def _text(file: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


FILES = _file("id"), _file("id", "carrier")
FORMATS = [
    Format("avro", "AVRO", (json.dumps(FIRST), json.dumps(SECOND)), (_avro(FIRST), _avro(SECOND))),
    Format("protobuf", "PROTOBUF", (_text(FILES[0]), _text(FILES[1])), (_protobuf(FILES[0]), _protobuf(FILES[1]))),
]


def produce(servers: str, topic: str, form: Format, ids: tuple[int, int], later: int) -> set[int]:
    """Put records of both schemas and poison into one partition; the offsets of the good ones."""
    poison: list[bytes | None] = [b"\x01no magic", b"", struct.pack(">BI", 0, ids[1]) + b"\xff\xff", None]
    values: list[bytes | None] = []
    for n in range(RECORDS):
        which = n % 2
        good_value = form.encode[which](ids[which], {"id": n, "carrier": "UA"})
        values.append(poison[n // 10 % len(poison)] if n % 10 == 0 else good_value)
    good = {n for n in range(RECORDS) if n % 10}
    values += [form.encode[1](later, {"id": RECORDS + n, "carrier": "later"}) for n in range(LATER)]
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0
    return good


def arrived(table: Path, group: str) -> bool:
    """Whether the table's position is at the end of the log."""
    known = positions(str(table), group) if DeltaTable.is_deltatable(str(table)) else {}
    return sum(known.values()) >= RECORDS + LATER


@contextmanager
def agent(root: Path, name: str, cluster: Cluster, form: Format, url: str) -> Iterator[tuple[Path, Callable[[], str]]]:
    """An agent of a fleet; its table and its log."""
    values = f'value_format = "{form.name}"\nschema_registry = {{ url = "{url}" }}\nvalue_subject = "flights-value"'
    values += '\nvalue_message = "air.Flight"' if form.name == "protobuf" else ""
    with FleetProcesses(root, config(name, root, cluster, values)) as fleet:
        fleet.start("a")
        yield root / "lake" / "home", lambda: fleet.log("a")
        assert fleet.stop() == {"a": 0}
        assert fleet.log("a").rstrip().endswith("agent 'a' has ended")


@contextmanager
def job(root: Path, name: str, cluster: Cluster, form: Format, url: str) -> Iterator[tuple[Path, Callable[[], str]]]:
    """A job with claims; its table and its log."""
    table, log = root / "table", root / "job.log"
    command = [sys.executable, "-m", "spark_sink", "claims", "run", "--group", name, "--table", str(table)]
    command += ["--database", f"sqlite:///{root}/claims.db", "--bootstrap-servers", cluster.bootstrap_servers]
    command += ["--subscribe", f"{name}.t", "--longest-s", "0.5", "--value-format", form.name]
    command += ["--schema-registry", f"url={url}", "--value-subject", "flights-value"]
    command += ["--value-message", "air.Flight"] if form.name == "protobuf" else []
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield table, log.read_text
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.name)
@pytest.mark.parametrize("run", [agent, job], ids=["agent", "job"])
def test_a_registry_decodes_values_and_poison_returns_when_it_can_be_decoded(
    cluster: Cluster, tmp_path: Path, name: str, run: Callable[..., Any], form: Format
) -> None:
    """The registry is down at first, which makes no record bad; a schema that it learns later repairs the records."""
    topic = f"{name}.t"
    make_topics(cluster.bootstrap_servers, [topic])
    with Server() as server:
        ids = tuple(server.register("flights-value", text, form.kind) for text in form.texts)
        later = len(server.schemas) + 1
        good = produce(cluster.bootstrap_servers, topic, form, ids, later)  # type: ignore[arg-type]  # two of them
        server.down = True
        with run(tmp_path, name, cluster, form, server.url) as (table, log):
            wait_until(lambda: "registry" in log(), 120, "the registry is missed", log)
            assert not arrived(table, name)
            server.down = False
            wait_until(lambda: arrived(table, name), 120, "all arrived", log)
        compare(table, name, good)
        assert server.register("flights-value", form.texts[1], form.kind) == later
        decoder = form.decoder(Registry({"url": server.url}, serialized=form.name == "protobuf"), "flights-value")
        done = replay(str(table), name, lambda rows: repaired(rows, decoder))
        assert (done.rows, done.left) == (LATER, RECORDS - len(good))
        assert replay(str(table), name, lambda rows: repaired(rows, decoder)).rows == 0
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["offset", "id", "carrier"]).to_pylist()
    assert {row["offset"] for row in rows} == good | set(range(RECORDS, RECORDS + LATER))
    assert all(row["id"] == row["offset"] for row in rows)
    assert {row["carrier"] for row in rows if row["offset"] >= RECORDS} == {"later"}
    assert verify(str(table), name).ok
    delete_topics(cluster.bootstrap_servers, [topic])


def compare(table: Path, group: str, good: set[int]) -> None:
    """The good records are in the table, old ones with the newer schema's columns; the others wait."""
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["offset", "id", "carrier"]).to_pylist()
    assert sorted(row["offset"] for row in rows) == sorted(good)
    assert all(row["id"] == row["offset"] for row in rows)
    assert {row["carrier"] for row in rows if row["offset"] % 2} == {"UA"}
    assert "UA" not in {row["carrier"] for row in rows if not row["offset"] % 2}
    assert verify(str(table), group).ok
    bad = DeltaTable(quarantine_of(str(table))).to_pyarrow_table(columns=["offset", "error_class"]).to_pylist()
    assert {row["offset"] for row in bad} == set(range(RECORDS + LATER)) - good
    assert {row["error_class"] for row in bad if row["offset"] >= RECORDS} == {"UnknownSchema"}
    assert {"NoSchemaId", "NotDecodable", "NullValue"} == {row["error_class"] for row in bad if row["offset"] < RECORDS}
    assert sum(part.num_rows for part in waiting(str(table), group)) == RECORDS + LATER - len(good)


def repaired(rows: pa.Table, decoder: Decoder) -> pa.Table:
    """Decode the records again: a repair as a user writes it."""
    found = decoder.decode(rows.column("value").to_pylist())
    kept = [number for number in range(rows.num_rows) if number not in found.bad]
    table = rows.select(["topic", "partition", "offset", "timestamp", "key"])
    for field, column in zip(decoder.columns, found.columns, strict=True):
        table = table.append_column(field, column)
    return table.take(pa.array(kept, pa.int64()))
