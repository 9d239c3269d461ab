"""Avro and Protobuf in the wire format, with a small registry that speaks the real one's HTTP."""

import base64
import io
import json
import pickle
import struct
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass

from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import AvroDecoder, ProtobufDecoder, Registry
from spark_sink.formats.registry_decoders import latest_of
from spark_sink.options import topic_decoders
from spark_sink.options.topic_decoders import LatestSchemas
from spark_sink.options.value_format import ValueFormat
from tests.integration.spark_sink.formats.registry_server import Server
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def server() -> Iterator[Server]:
    """A registry of one test."""
    with Server() as made:
        yield made


@pytest.fixture
def registry(server: Server) -> Registry:
    """A client of it."""
    return Registry({"url": server.url})


PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "double"}]}
FIRST = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "id", "type": "long"}, {"name": "place", "type": ["null", "Place"], "default": None}],
}
SECOND = {
    **FIRST,
    "fields": [
        *FIRST["fields"],
        {"name": "carrier", "type": "string", "default": "none"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
    ],
}


def avro(schema: dict[str, Any], number: int, record: dict[str, Any]) -> bytes:
    """A record in the wire format."""
    named: dict[str, Any] = {}
    parse_schema(PLACE, named_schemas=named)
    parsed = parse_schema(schema, named_schemas=named)
    target = io.BytesIO()
    schemaless_writer(target, parsed, record)
    return struct.pack(">BI", 0, number) + target.getvalue()


def register_flights(server: Server) -> tuple[int, int]:
    """Two versions that refer to another subject."""
    server.register("place", json.dumps(PLACE), "AVRO")
    reference = [("Place", "place", 1)]
    first = server.register("flights-value", json.dumps(FIRST), "AVRO", reference)
    return first, server.register("flights-value", json.dumps(SECOND), "AVRO", reference)


def test_avro_of_old_and_new_writers_becomes_the_newest_columns(server: Server, registry: Registry) -> None:
    """References are followed, defaults fill what an older writer did not know, each schema is asked for once."""
    first, second = register_flights(server)
    decoder = AvroDecoder(registry, latest_of(registry, "flights-value"))
    assert decoder.columns == pa.schema(
        [
            ("id", pa.int64()),
            ("place", pa.struct([("x", pa.float64())])),
            ("carrier", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
        ]
    )
    values: list[bytes | None] = [
        avro(FIRST, first, {"id": 1, "place": {"x": 2.5}}),
        avro(SECOND, second, {"id": 2, "place": None, "carrier": "UA", "at": 5}),
    ] * 50
    found = pickle.loads(pickle.dumps(decoder)).decode(values)  # noqa: S301 -- as Spark hands it to a task
    assert not found.bad
    assert found.columns[0].to_pylist() == [1, 2] * 50
    assert found.columns[1].to_pylist()[:2] == [{"x": 2.5}, None]
    assert found.columns[2].to_pylist()[:2] == ["none", "UA"]
    assert len([path for path in server.asked if path.startswith(f"/schemas/ids/{first}")]) == 1


def test_poison_among_avro_is_told_with_its_schema(server: Server, registry: Registry) -> None:
    """Truncated, too long, unknown id, no id, null."""
    _, second = register_flights(server)
    decoder = AvroDecoder(registry, latest_of(registry, "flights-value"))
    good = avro(SECOND, second, {"id": 2, "place": None, "carrier": "UA", "at": 5})
    unknown = struct.pack(">BI", 0, 999)
    found = decoder.decode([good, good[:-3], good + b"x", unknown, b"\x01abcdef", b"ab", None, good])
    assert {number: (one.error, one.schema_id) for number, one in found.bad.items()} == {
        1: ("NotDecodable", second),
        2: ("NotDecodable", second),
        3: ("UnknownSchema", 999),
        4: ("NoSchemaId", None),
        5: ("NoSchemaId", None),
        6: ("NullValue", None),
    }
    assert found.columns[0].to_pylist() == [2, None, None, None, None, None, None, 2]


@pytest.mark.slow
def test_a_registry_that_is_down_makes_no_bad_records(server: Server, registry: Registry) -> None:
    """The batch fails and is tried again: the same record must decode the same way at any time."""
    first, _ = register_flights(server)
    decoder = AvroDecoder(registry, latest_of(registry, "flights-value"))
    value = avro(FIRST, first, {"id": 1, "place": None})
    server.down = True
    with pytest.raises(FetchError, match=r"schema registry http://127\.0\.0\.1"):
        decoder.decode([value])
    server.down = False
    assert not decoder.decode([value]).bad


def test_a_subject_that_is_unknown_is_an_option_error(registry: Registry) -> None:
    """Before anything is read."""
    with pytest.raises(OptionError, match="no subject 'missing'"):
        latest_of(registry, "missing")


def test_the_latest_schema_is_read_again_while_values_are_decoded(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry's client would return the first answer for ever."""
    monkeypatch.setattr(topic_decoders, "EVERY_S", 0)
    server.register("flights-value", json.dumps(FIRST | {"fields": FIRST["fields"][:1]}), "AVRO")
    latest = LatestSchemas(ValueFormat(name="avro", subject="flights-value", registry={"url": server.url}))

    def columns() -> list[str]:
        found = latest.newest("flights-value")
        return [] if found is None else found.columns.names

    wait_until(lambda: columns() == ["id", "_rescued"], 30, "the first schema")
    more = [FIRST["fields"][0], *SECOND["fields"][2:]]
    server.register("flights-value", json.dumps(FIRST | {"fields": more}), "AVRO")
    wait_until(lambda: columns() == ["id", "carrier", "at", "_rescued"], 30, "the second schema")
    server.down = True
    assert columns() == ["id", "carrier", "at", "_rescued"]


class Proto:
    """A file of two messages, built as protoc would."""

    file: ClassVar = descriptor_pb2.FileDescriptorProto(name="flight.proto", package="air", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    kinds: ClassVar = descriptor_pb2.FieldDescriptorProto
    other = file.message_type.add(name="Other")
    other.field.add(name="n", number=1, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    flight = file.message_type.add(name="Flight")
    for number, (name, kind, label, of) in enumerate(
        [
            ("id", kinds.TYPE_INT64, kinds.LABEL_OPTIONAL, None),
            ("big", kinds.TYPE_UINT64, kinds.LABEL_OPTIONAL, None),
            ("tags", kinds.TYPE_STRING, kinds.LABEL_REPEATED, None),
            ("at", kinds.TYPE_MESSAGE, kinds.LABEL_OPTIONAL, ".google.protobuf.Timestamp"),
            ("other", kinds.TYPE_MESSAGE, kinds.LABEL_OPTIONAL, ".air.Other"),
        ],
        1,
    ):
        flight.field.add(name=name, number=number, type=kind, label=label, type_name=of)


def test_protobuf_needs_no_generated_code(server: Server) -> None:
    """Types come from the registry; the message is found by the indexes; another message is poison."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(Proto.file)
    flight = GetMessageClass(pool.FindMessageTypeByName("air.Flight"))
    text = base64.b64encode(Proto.file.SerializeToString()).decode()
    number = server.register("flights-value", text, "PROTOBUF")
    registry = Registry({"url": server.url}, serialized=True)
    decoder = ProtobufDecoder(registry, latest_of(registry, "flights-value"), "air.Flight")
    message = flight(id=-5, big=2**63, tags=["a", "b"], other={"n": 7})
    message.at.seconds, message.at.nanos = 10, 5_000
    header = struct.pack(">BI", 0, number)
    second_message, first_message = b"\x02\x02", b"\x00"
    payload = message.SerializeToString()
    found = decoder.decode(
        [
            header + second_message + payload,
            header + second_message + payload[:-1],
            header + first_message + b"\x08\x01",
            header,
        ]
    )
    row = {field.name: column[0].as_py() for field, column in zip(decoder.columns, found.columns, strict=True)}
    assert row["id"] == -5
    assert int(row["big"]) == 2**63
    assert row["tags"] == ["a", "b"]
    assert row["at"].timestamp() == pytest.approx(10.000005)
    assert row["other"] == {"n": 7}
    assert {n: one.error for n, one in found.bad.items()} == dict.fromkeys([1, 2, 3], "NotDecodable")
    assert all("serialized" in path for path in server.asked)
