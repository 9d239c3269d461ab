"""A registry in memory, and values in the wire format."""

import base64
import io
import json
import struct
import threading
from collections.abc import Mapping
from typing import Any

from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2

from spark_sink.errors import FetchError
from spark_sink.formats import Registry
from spark_sink.formats.schema_registry import Registered


class Schemas(Registry):
    """Schemas by id, without a server."""

    def __init__(self, schemas: dict[int, Registered]) -> None:
        super().__init__({"url": "http://unused"})
        self.schemas = schemas

    def by_id(self, schema_id: int) -> Registered | None:
        """The schema of that id."""
        return self.schemas.get(schema_id)


def registered_file(file: descriptor_pb2.FileDescriptorProto) -> Registered:
    """Return a Protobuf schema as a registry has it: its descriptor in base64."""
    return Registered(base64.b64encode(file.SerializeToString()).decode(), {})


def framed(schema_id: int, payload: bytes) -> bytes:
    """A payload behind the id of its schema."""
    return struct.pack(">Bi", 0, schema_id) + payload


COUPON = {"name": "coupon", "type": ["null", "int"], "default": None}


def flight_schema(*fields: Mapping[str, object]) -> dict[str, Any]:
    """A record with an id and these fields."""
    return {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}, *fields]}


class Subject(Schemas):
    """A subject of a registry, whose latest schema is the last one."""

    down = False

    def __init__(self) -> None:
        super().__init__({})
        self.answers = threading.Event()
        self.answers.set()
        self.add(flight_schema())

    def add_text(self, text: str) -> None:
        """Register a schema as it is."""
        self.schemas[len(self.schemas)] = Registered(text, {})

    def add(self, schema: Mapping[str, Any]) -> None:
        """Register a schema; its id is the number of schemas before it."""
        self.schemas[len(self.schemas)] = Registered(json.dumps(schema), {})

    def latest(self, subject: str) -> Registered | None:
        """The last schema."""
        if self.down:
            raise FetchError(f"{subject}: no answer")
        self.answers.wait()
        return self.schemas[len(self.schemas) - 1]

    def value(self, schema_id: int, row: Mapping[str, Any]) -> bytes:
        """A value of a writer with this schema."""
        target = io.BytesIO()
        schemaless_writer(target, parse_schema(json.loads(self.schemas[schema_id].text)), dict(row))
        return framed(schema_id, target.getvalue())
