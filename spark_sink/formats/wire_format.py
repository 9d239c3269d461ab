"""Avro and Protobuf values in the wire format of schema registries."""

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import avro, protobuf
from spark_sink.formats.arrow_columns import columns_of
from spark_sink.formats.decoder import Bad, Decoded
from spark_sink.formats.schema_registry import Registered, Registry, read_header

_Row = dict[str, Any]


class _RegisteredDecoder:
    """What both share: the header, the schema of each id, and rows into columns."""

    def __init__(self, registry: Registry, columns: pa.Schema) -> None:
        self._registry = registry
        self._columns = columns
        self._readers: dict[int, Callable[[bytes], _Row] | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_readers": {}}

    @property
    def columns(self) -> pa.Schema:
        """Names and types of what is decoded."""
        return self._columns

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch.

        Raises:
            FetchError: the registry does not answer.
        """
        bad: dict[int, Bad] = {}
        rows: list[_Row | None] = []
        for number, value in enumerate(values):
            row, wrong = self._read(value)
            rows.append(row)
            if wrong is not None:
                bad[number] = wrong
        columns, unfit = columns_of(rows, self._columns)
        return Decoded(columns, bad | unfit)

    def _read(self, value: bytes | None) -> tuple[_Row | None, Bad | None]:
        if value is None:
            return None, Bad("NullValue", "the record has no value")
        try:
            schema_id = read_header(value)
        except ValueError as error:
            return None, Bad("NoSchemaId", str(error))
        reader = self._reader(schema_id)
        if reader is None:
            return None, Bad("UnknownSchema", f"the registry has no schema {schema_id}", schema_id)
        try:
            return reader(value[5:]), None
        except FetchError:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever the decoder's library raises on broken bytes
            return None, Bad("NotDecodable", f"{type(error).__name__}: {error}", schema_id)

    def _reader(self, schema_id: int) -> Callable[[bytes], _Row] | None:
        if schema_id not in self._readers:
            found = self._registry.by_id(schema_id)
            self._readers[schema_id] = None if found is None else self._make(found)
        return self._readers[schema_id]

    def _make(self, schema: Registered) -> Callable[[bytes], _Row]:
        raise NotImplementedError


class AvroDecoder(_RegisteredDecoder):
    """Decodes Avro records; older and newer writers are resolved to the subject's latest schema.

    Args:
        registry: where schemas are asked for by id.
        latest: the schema that gives the columns.
    """

    def __init__(self, registry: Registry, latest: Registered) -> None:
        self._latest = latest
        super().__init__(registry, avro.columns(latest))

    def _make(self, schema: Registered) -> Callable[[bytes], _Row]:
        writer, reader = avro.parsed(schema), avro.parsed(self._latest)

        def read(payload: bytes) -> _Row:
            source = io.BytesIO(payload)
            found = avro.read(source, writer, reader)
            if source.tell() != len(payload):
                raise ValueError(f"{len(payload) - source.tell()} bytes are left over")
            return found

        return read


class ProtobufDecoder(_RegisteredDecoder):
    """Decodes Protobuf messages of one type.

    Args:
        registry: where schemas are asked for by id, serialized.
        latest: the schema that gives the columns.
        message: full name of the message; None for the first of the schema.
    """

    def __init__(self, registry: Registry, latest: Registered, message: str | None = None) -> None:
        descriptor = protobuf.message_of(latest, message)
        self._name = str(descriptor.full_name)
        super().__init__(registry, protobuf.columns(descriptor))

    def _make(self, schema: Registered) -> Callable[[bytes], _Row]:
        return protobuf.reader(schema, self._name)


def latest_of(registry: Registry, subject: str) -> Registered:
    """The schema that gives the columns.

    Raises:
        OptionError: the registry has no such subject.
    """
    found = registry.latest(subject)
    if found is None:
        raise OptionError(f"option 'valueSubject': the registry has no subject {subject!r}")
    return found


def given_avro(text: str) -> Registered:
    """An Avro schema that was given as an option instead of a subject."""
    try:
        json.loads(text)
    except ValueError as error:
        raise OptionError(f"option 'valueSchema': not JSON ({error})") from error
    return Registered(text, {})
