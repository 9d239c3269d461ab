"""Schemas by id, from a schema registry, through confluent-kafka's client."""

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assignors.clients import shown
from spark_sink.errors import FetchError

_MAGIC = 0
_HEADER = struct.Struct(">Bi")
_RETRIES, _PAUSE_S = 3, 0.5
_TIMEOUT_S = 10  # the client's own default is to wait forever
_LATEST_S = 1


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema of the registry with its references.

    Attributes:
        text: JSON for Avro, base64 of a FileDescriptorProto for Protobuf.
        references: by name, including indirect ones, each after those it needs.
    """

    text: str
    references: Mapping[str, str]


def read_header(value: bytes) -> int:
    """Read the schema id before a payload in the wire format: a zero byte, then four bytes, big-endian.

    Raises:
        ValueError: the value is too short or has another first byte.
    """
    if len(value) < _HEADER.size:
        raise ValueError(f"{len(value)} bytes are too few for a schema id")
    magic, number = _HEADER.unpack_from(value)
    if magic != _MAGIC:
        raise ValueError(f"the first byte is {magic}, need {_MAGIC}: was it written without a registry?")
    if number < 0:
        raise ValueError(f"the schema id is {number}, need 0 or more")
    return int(number)


class Registry:
    """Requests each schema from a schema registry once.

    Args:
        config: of confluent-kafka's SchemaRegistryClient; at least `url`.
        serialized: whether schemas are wanted as base64 of a FileDescriptorProto, as Protobuf needs them.
    """

    def __init__(self, config: Mapping[str, str], *, serialized: bool = False) -> None:
        self._config = dict(config)
        self._format = "serialized" if serialized else None
        self._client: Any = None
        self._known: dict[int, Registered | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_config": self._config, "_format": self._format, "_client": None, "_known": {}}

    def by_id(self, schema_id: int) -> Registered | None:
        """Return the schema of that id; None if the registry reports that there is none.

        Raises:
            FetchError: the registry does not answer, which may pass.
        """
        if schema_id not in self._known:
            self._known[schema_id] = self._resolve(self._ask("get_schema", schema_id, fmt=self._format))
        return self._known[schema_id]

    def latest(self, subject: str) -> Registered | None:
        """Return the newest schema of a subject; None if there is none.

        Raises:
            FetchError: the registry does not answer, which may pass.
        """
        found = self._ask("get_latest_version", subject, fmt=self._format)
        return None if found is None else self._resolve(found.schema)

    def _resolve(self, schema: Any) -> Registered | None:  # noqa: ANN401 -- the client's own class
        if schema is None:
            return None
        references: dict[str, str] = {}
        for one in schema.references or ():
            found = self._ask("get_version", one.subject, one.version, fmt=self._format)
            inner = None if found is None else self._resolve(found.schema)
            if inner is None:
                raise FetchError(f"schema registry: {one.subject} version {one.version} is referred to, but not there")
            references |= dict(inner.references)
            references[one.name] = inner.text
        return Registered(schema.schema_str, references)

    def _ask(self, method: str, *arguments: object, **more: object) -> Any:  # noqa: ANN401 -- the client's answers
        from confluent_kafka.schema_registry.error import SchemaRegistryError  # noqa: PLC0415 -- an optional package

        for attempt in range(_RETRIES):
            try:
                return getattr(self._connected(), method)(*arguments, **more)
            except SchemaRegistryError as error:
                if error.http_status_code == 404:  # noqa: PLR2004 -- HTTP's not found
                    return None
                reason: Exception = error
            except Exception as error:  # noqa: BLE001 -- the client's HTTP library may raise any error
                reason = error
            time.sleep(_PAUSE_S * attempt)
        raise FetchError(
            f"schema registry {shown(str(self._config.get('url')))}: {arguments[0]!r} could not be read: {reason}"
        ) from reason

    def _connected(self) -> Any:  # noqa: ANN401 -- the client's own class
        if self._client is None:
            from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 -- an optional package

            timeout_s = float(self._config.get("timeout", _TIMEOUT_S))
            # By default it returns the latest schema of its first answer forever.
            latest_s = float(self._config.get("cache.latest.ttl.sec", _LATEST_S))
            given = {**self._config, "timeout": timeout_s, "cache.latest.ttl.sec": latest_s}
            self._client = SchemaRegistryClient(given)
        return self._client
