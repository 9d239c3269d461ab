"""Avro and Protobuf values in the wire format of schema registries."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import avro, avro_limits, protobuf
from spark_sink.formats.arrow_columns import columns_of
from spark_sink.formats.avro_resolution import Resolution
from spark_sink.formats.decoder import Bad, Decoded, with_unknown
from spark_sink.formats.protobuf_unknown import unknown_finder
from spark_sink.formats.schema_registry import Registered, Registry, read_header
from spark_sink.formats.unknown_fields import Found, Known, find, with_column
from spark_sink.formats.unknown_policy import NullPolicy, Policy

Row = Mapping[str, Any]
# Reads the bytes after a schema id: the row and, if it has unknown fields, all fields with the known ones.
Read = Callable[[bytes], tuple[Row, tuple[Row, Known] | None]]

_PASSING = (FetchError, MemoryError)  # temporary errors, which must not make a record bad


class _RegisteredDecoder:
    """The common part of both decoders: the header, the schema of each id, and the conversion of rows into columns."""

    nulls: NullPolicy = "quarantine"

    def __init__(self, registry: Registry, columns: pa.Schema, unknown: Policy) -> None:
        self._registry = registry
        self._fields = columns
        self._columns = with_column(columns, unknown)
        self._reads: dict[int, Read | Bad] = {}
        self.unknown = unknown

    @property
    def columns(self) -> pa.Schema:
        """Names and types of the decoded columns."""
        return self._columns

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch.

        Raises:
            FetchError: the registry does not answer.
        """
        bad: dict[int, Bad] = {}
        rows: list[Row | None] = []
        rest = Found()
        for number, value in enumerate(values):
            found = self._read(value)
            if isinstance(found, Bad):
                bad[number] = found
                rows.append(None)
                continue
            row, unknown = found
            rows.append(row)
            if unknown is not None:
                rest.add(find({number: unknown[0]}, unknown[1]))
        columns, unfit = columns_of(rows, self._fields, pa.array)
        decoded = Decoded(columns, bad | unfit)
        if self.unknown == "ignore":
            return decoded
        return with_unknown(decoded, rest.without(unfit), self.unknown, len(rows))

    def _read(self, value: bytes | None) -> tuple[Row, tuple[Row, Known] | None] | Bad:
        if value is None:
            return Bad("NullValue", "the record has no value")
        try:
            schema_id = read_header(value)
        except ValueError as error:
            return Bad("NoSchemaId", str(error))
        read = self._reader(schema_id)
        if isinstance(read, Bad):
            return read
        try:
            return read(value[5:])
        except _PASSING:
            raise
        except Exception as error:  # noqa: BLE001 -- the decoder's library may raise any error on invalid bytes
            return Bad("NotDecodable", f"{type(error).__name__}: {error}", schema_id)

    def _reader(self, schema_id: int) -> Read | Bad:
        if schema_id not in self._reads:
            self._reads[schema_id] = self._found(schema_id)
        return self._reads[schema_id]

    def _found(self, schema_id: int) -> Read | Bad:
        found = self._registry.by_id(schema_id)
        if found is None:
            return Bad("UnknownSchema", f"the registry has no schema {schema_id}", schema_id)
        try:
            return self._make(found)
        except _PASSING:
            raise
        except Exception as error:  # noqa: BLE001 -- a schema of another language, or of a primitive type
            return Bad("UnusableSchema", f"schema {schema_id}: {type(error).__name__}: {error}", schema_id)

    def _make(self, schema: Registered) -> Read:
        raise NotImplementedError


class AvroDecoder(_RegisteredDecoder):
    """Decodes Avro records; older and newer writers are resolved to the subject's latest schema.

    Args:
        registry: returns schemas by id.
        latest: the schema that defines the columns.
        unknown: handling of fields that only the writer's schema has.
    """

    def __init__(self, registry: Registry, latest: Registered, unknown: Policy = "ignore") -> None:
        self._latest = latest
        fields, self._convert = avro.columns(latest)
        super().__init__(registry, fields, unknown)

    @property
    def required(self) -> frozenset[str]:
        """Paths of the fields without a default: a record of a writer without such a field is bad."""
        named: dict[str, Any] = {}
        return frozenset(avro.required(avro.parsed(self._latest, named), named))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_convert"} | {"_reads": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _, self._convert = avro.columns(self._latest)

    def _make(self, schema: Registered) -> Read:
        named_writer: dict[str, Any] = {}
        named_reader: dict[str, Any] = {}
        writer, reader = avro.parsed(schema, named_writer), avro.parsed(self._latest, named_reader)
        resolution = Resolution(named_writer, named_reader)
        known = resolution.known(writer, reader)
        whole = self.unknown != "ignore" and not resolution.complete
        check = avro_limits.check_of(writer, named_writer)

        def read(payload: bytes) -> tuple[Row, tuple[Row, Known] | None]:
            if check is not None:
                check(payload)
            row = self._convert(avro.read(payload, writer, reader))
            return row, (avro.read(payload, writer, None), known) if whole else None

        return read


class ProtobufDecoder(_RegisteredDecoder):
    """Decodes Protobuf messages of one type.

    Args:
        registry: returns schemas by id, serialized.
        latest: the schema that defines the columns.
        message: full name of the message; None for the first of the schema.
        unknown: handling of fields that only the writer's schema has, or that no schema has.
    """

    def __init__(
        self, registry: Registry, latest: Registered, message: str | None = None, unknown: Policy = "ignore"
    ) -> None:
        self._latest = latest
        descriptor = protobuf.message_of(latest, message)
        self._name = str(descriptor.full_name)
        super().__init__(registry, protobuf.columns(descriptor), unknown)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reads": {}}

    def _make(self, schema: Registered) -> Read:
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415 -- an optional package

        file, latest = protobuf.file_of(schema), protobuf.message_of(self._latest, self._name)
        known: dict[tuple[int, ...], Any] = {}

        def read(payload: bytes) -> tuple[Row, tuple[Row, Known] | None]:
            path, begin = protobuf.read_indexes(payload)
            if path not in known:
                kind = protobuf.message_at(file, path)
                if kind.full_name != self._name:
                    raise ValueError(f"the message is a {kind.full_name}, need {self._name}")
                known[path] = (
                    GetMessageClass(kind),
                    protobuf.row_maker(kind, latest, list(self._fields)),
                    None if self.unknown == "ignore" else unknown_finder(kind, latest),
                )
            make, row, unknown = known[path]
            message = make.FromString(payload[begin:])
            return row(message), None if unknown is None else unknown(message)

        return read


def latest_of(registry: Registry, subject: str) -> Registered:
    """Return the schema that defines the columns.

    Raises:
        OptionError: the registry has no such subject.
    """
    found = registry.latest(subject)
    if found is None:
        raise OptionError(f"option 'valueSubject': the registry has no subject {subject!r}")
    return found


def given_avro(text: str) -> Registered:
    """Return an Avro schema from an option, used instead of a subject.

    Raises:
        OptionError: the text is not JSON.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"option 'valueSchema': not JSON ({error})") from error
    return Registered(text, {})
