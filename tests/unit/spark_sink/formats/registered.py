"""A registry in memory, and values in the wire format."""

import struct

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


def framed(schema_id: int, payload: bytes) -> bytes:
    """A payload behind the id of its schema."""
    return struct.pack(">Bi", 0, schema_id) + payload
