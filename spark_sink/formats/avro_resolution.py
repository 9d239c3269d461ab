"""Avro: finds the fields of a writer's schema that the reader's schema knows, by the writer's names."""

from collections.abc import Mapping
from typing import Any

from spark_sink.formats.unknown_fields import Each, Known

Schema = Any  # an Avro schema, as parsed by fastavro
Named = Mapping[str, Any]


class Resolution:
    """Compares two schemas.

    Args:
        writer: named types of the writer.
        reader: named types of the reader.
    """

    def __init__(self, writer: Named, reader: Named) -> None:
        self._writer = writer
        self._reader = reader
        self._records: dict[tuple[str, str], dict[str, Known]] = {}
        self.complete = True

    def known(self, writer: Schema, reader: Schema) -> Known:
        """Return the known fields inside a type; afterwards `complete` is true if the writer has no others."""
        writer, reader = _definition(writer, self._writer), _definition(reader, self._reader)
        if isinstance(writer, list):
            return self._known_of_union(writer, reader)
        if isinstance(reader, list):
            alike = [_definition(one, self._reader) for one in reader]
            same = [one for one in alike if isinstance(one, dict) and _kind(one) == _kind(writer)]
            reader = next((one for one in same if _matches(writer, one)), None)
        if not (isinstance(writer, dict) and isinstance(reader, dict)) or _kind(writer) != _kind(reader):
            return None
        if _kind(writer) in {"array", "map"}:
            part = "items" if writer["type"] == "array" else "values"
            inner = self.known(writer[part], reader[part])
            return None if inner is None else Each(inner)
        return self._known_of_record(writer, reader) if _kind(writer) == "record" else None

    def _known_of_record(self, writer: dict[str, Any], reader: dict[str, Any]) -> Known:
        pair = (writer["name"], reader["name"])
        if pair in self._records:
            return self._records[pair]
        found = self._records[pair] = {}
        by_name = {alias: one for one in reader["fields"] for alias in one.get("aliases", ())}
        by_name |= {one["name"]: one for one in reader["fields"]}
        for one in writer["fields"]:
            if (match := by_name.get(one["name"])) is not None:
                found[one["name"]] = self.known(one["type"], match["type"])
            else:
                self.complete = False
        return found

    def _known_of_union(self, writer: list[Any], reader: Schema) -> Known:
        # Values do not name their type, so a field counts as unknown if any of the records lacks it.
        records = [one for branch in writer if _kind(one := _definition(branch, self._writer)) == "record"]
        found = [(one, inner) for one in records if isinstance(inner := self.known(one, reader), Mapping)]
        if len(found) == 1:
            return found[0][1]
        if found:
            lacking = {field["name"] for one, inner in found for field in one["fields"] if field["name"] not in inner}
            return {name: inner for _, each in found for name, inner in each.items() if name not in lacking}
        others = [
            self.known(one, reader) for one in writer if _kind(_definition(one, self._writer)) in {"array", "map"}
        ]
        return next((one for one in others if one is not None), None)


def _definition(kind: Schema, named: Named) -> Schema:
    return named.get(kind, kind) if isinstance(kind, str) else kind


def _kind(kind: Schema) -> Schema:
    found = kind.get("type") if isinstance(kind, dict) else kind
    return "record" if found == "error" else found


def _matches(writer: dict[str, Any], reader: dict[str, Any]) -> bool:
    if "name" not in writer:
        return True
    short = writer["name"].rpartition(".")[2]
    aliases = {one.rpartition(".")[2] for one in reader.get("aliases", ())}
    return short == reader["name"].rpartition(".")[2] or short in aliases
