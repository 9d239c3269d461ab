"""Finds the fields of a value that the schema does not know, converts them to JSON text, and logs them."""

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.unknown_policy import COLUMN, Policy

log = logging.getLogger(__name__)

_MOST_LOGGED = 100  # fields of a topic; objects used as maps may have any number

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Each:
    """The known fields of each element of a list, or of each value of a map."""

    inner: "Known"


# Known fields by name, with the known fields inside them; None if no field inside can be unknown.
Known = Mapping[str, "Known"] | Each | None


@dataclass(frozen=True, slots=True)
class Found:
    """Unknown fields of one batch.

    Attributes:
        texts: values of the column `_rescued`, by row number.
        rows: numbers of the rows that have a field, by its path, such as `place.y` or `items[].z`.
    """

    texts: dict[int, str] = field(default_factory=dict)
    rows: dict[str, list[int]] = field(default_factory=dict)

    def add(self, other: "Found") -> None:
        """Add the fields of other rows."""
        self.texts.update(other.texts)
        for path, numbers in other.rows.items():
            self.rows.setdefault(path, []).extend(numbers)

    def without(self, bad: Container[int]) -> "Found":
        """Return the fields without bad rows, which the quarantine keeps in full."""
        texts = {number: text for number, text in self.texts.items() if number not in bad}
        rows = {path: [one for one in numbers if one not in bad] for path, numbers in self.rows.items()}
        return Found(texts, {path: numbers for path, numbers in rows.items() if numbers})


def known_fields(columns: pa.Schema) -> dict[str, Known]:
    """Return the fields that the columns can store."""
    return {one.name: _inside(one.type) for one in columns}


def _inside(kind: pa.DataType) -> Known:
    if pa.types.is_struct(kind):
        return {one.name: _inside(one.type) for one in kind}
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        inner = _inside(kind.value_type if pa.types.is_list(kind) else kind.item_type)
        return None if inner is None else Each(inner)
    return None


def with_column(columns: pa.Schema, policy: Policy) -> pa.Schema:
    """Return the columns, with `_rescued` if the policy needs it.

    Raises:
        OptionError: a column has that name.
    """
    if policy not in {"rescue", "evolve"}:
        return columns
    if COLUMN in columns.names:
        raise OptionError(
            f"column {COLUMN!r} holds unknown fields: rename it in the schema, or take unknownFields=ignore"
        )
    return columns.append(pa.field(COLUMN, pa.string()))


def find(rows: Mapping[int, Row], known: Known, exact: Callable[[int], Row] | None = None) -> Found:
    """Find unknown fields.

    Args:
        rows: rows by number.
        known: the known fields.
        exact: returns a row with every digit, for rows whose doubles may have lost some.
    """
    from spark_sink.formats.json_text import has_double, json_text  # noqa: PLC0415 -- orjson, which the raw format does not need

    found = Found()
    for number, row in rows.items():
        paths: set[str] = set()
        if (rest := _rest(row, known, "", paths)) is not None:
            if exact is not None and has_double(rest):
                rest = _rest(exact(number), known, "", set())
            found.texts[number] = json_text(rest)
            for path in paths:
                found.rows.setdefault(path, []).append(number)
    return found


def _rest(value: object, known: Known, path: str, paths: set[str]) -> object:
    """Return the unknown part of a value; None if there is none."""
    if known is None:
        return None
    if isinstance(known, Each):
        return _rest_of_each(value, known.inner, f"{path}[]", paths)
    if not isinstance(value, Mapping):
        return None
    rest: dict[str, object] = {}
    for name, one in value.items():
        below = f"{path}.{name}" if path else name
        if name not in known:
            paths.add(below)
            rest[name] = one
        elif known[name] is not None and (inner := _rest(one, known[name], below, paths)) is not None:
            rest[name] = inner
    return rest or None


def _rest_of_each(value: object, known: Known, path: str, paths: set[str]) -> object:
    if isinstance(value, Mapping):
        rests = {key: _rest(one, known, path, paths) for key, one in value.items()}
        return {key: one for key, one in rests.items() if one is not None} or None
    if not isinstance(value, Sequence):
        return None
    # Elements keep their positions; elements without unknown fields are null.
    parts = [_rest(one, known, path, paths) for one in value]
    return parts if any(one is not None for one in parts) else None


def log_once(
    topics: pa.Array, unknown: Mapping[str, Sequence[int]], policy: Policy, logged: dict[str, set[str]]
) -> None:
    """Log each field of each topic once per process, with the number of records of this batch that have it.

    Args:
        topics: topics of the batch's rows.
        unknown: numbers of the rows by field.
        policy: handling of the fields, for the message.
        logged: fields already logged, by topic; new ones are added.
    """
    for path, numbers in unknown.items():
        counts = topics.take(pa.array(numbers, pa.int64())).value_counts().to_pylist()
        for topic, count in ((one["values"], one["counts"]) for one in counts):
            before = logged.setdefault(topic, set())
            if path in before or len(before) > _MOST_LOGGED:
                continue
            before.add(path)
            if len(before) > _MOST_LOGGED:
                text = "topic %r has more than %d fields that the schema lacks: no more are logged"
                log.warning(text, topic, _MOST_LOGGED, extra={"topic": topic})
            else:
                log.warning(_SENTENCES[policy], topic, path, count, extra={"topic": topic})


_KEPT = "topic %r: field %r is not in the schema (%d records of this batch have it); the column " + COLUMN + " keeps it"
_SENTENCES = {
    "rescue": _KEPT,
    "evolve": _KEPT + ", and with mergeSchema=true it gets a column where the columns are those of the table",
    "quarantine": "topic %r: field %r is not in the schema (%d records of this batch have it); they are quarantined",
    "ignore": "topic %r: field %r is not in the schema (%d records of this batch have it); it is dropped",
}
