"""Decodes JSON values: one object per record; its members become columns.

orjson parses one record at a time; then values are converted one column at a time. Arrow's own JSON reader is faster,
but a value such as `null` causes a segmentation fault, so it cannot be used for untrusted records.

Where there was a C compiler at the build, `json_compiled` decodes most records first, about twenty times as fast. This
module decides on all others, and is what the compiled one is tested against.
"""

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from spark_sink.formats.arrow_columns import Row, columns_of
from spark_sink.formats.decoder import Bad, Decoded, Quick, with_unknown
from spark_sink.formats.json_arrays import InexactError, JsonArrays
from spark_sink.formats.json_text import parse_exactly
from spark_sink.formats.unknown_fields import find, known_fields, with_column
from spark_sink.formats.unknown_policy import NullPolicy, Policy

try:
    from spark_sink.formats import json_compiled
except ImportError:
    json_compiled = None  # type: ignore[assignment]  # built without a C compiler

# Exact parsing and writing use the stack, and the result must not depend on the free stack. orjson reads 1,024 levels
# and writes 254.
_MOST_LEVELS = 200


class JsonDecoder:
    """Decodes JSON objects into known columns.

    Args:
        columns: names and types.
        unknown: handling of members that are not among the columns.
        texts: text columns accept any value, as JSON text if it is not a string. This holds for inferred columns,
            because a sample cannot show that a member is always a string.
    """

    nulls: NullPolicy = "quarantine"

    def __init__(self, columns: pa.Schema, unknown: Policy = "ignore", *, texts: bool = False) -> None:
        self._fields = columns
        self._known = known_fields(columns)
        self._columns = with_column(columns, unknown)
        self._texts = texts
        self._plan: Any = None  # False if the compiled decoder has no plan for these columns
        self.unknown = unknown

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_plan": None}

    @property
    def fields(self) -> pa.Schema:
        """The columns without the column of unknown fields."""
        return self._fields

    def with_columns(self, columns: pa.Schema) -> "JsonDecoder":
        """Return the same decoder for other columns."""
        made = JsonDecoder(columns, self.unknown, texts=self._texts)
        made.nulls = self.nulls
        return made

    @property
    def columns(self) -> pa.Schema:
        """Names and types of the decoded columns."""
        return self._columns

    def quick(self, values: pa.Array) -> Quick | None:
        """Decode the values of one batch, without those of which the compiled decoder is not certain."""
        if json_compiled is None or not pa.types.is_binary(values.type):
            return None
        if self._plan is None:
            possible = json_compiled.can_plan(self._fields)
            self._plan = possible and json_compiled.Plan(
                self._fields, any_text=self._texts, unknown=self.unknown == "ignore"
            )
        if not self._plan:
            return None
        columns, state = self._plan.decode(values)
        if len(self._columns) > len(self._fields):
            columns.append(pa.nulls(len(values), pa.string()))  # `_rescued`: no row that was taken has unknown members
        return Quick(columns, state == json_compiled.LEFT, state == json_compiled.INEXACT_ROW)

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch."""
        bad: dict[int, Bad] = {}
        rows = [parse(value, number, bad) for number, value in enumerate(values)]
        try:
            return self._decoded(values, rows, bad)
        except InexactError:
            rows = [None if row is None else _exactly(values, number) for number, row in enumerate(rows)]
            return self._decoded(values, rows, bad)

    def _decoded(self, values: Sequence[bytes | None], rows: Sequence[Row | None], bad: dict[int, Bad]) -> Decoded:
        arrays = JsonArrays(texts=self._texts)
        columns, wrong = columns_of(rows, self._fields, arrays.make)
        found = Decoded(columns, bad | wrong)
        if self.unknown == "ignore":
            return found
        rest = None
        if arrays.unknown or not set().union(*filter(None, rows)) <= self._known.keys():
            good = {n: row for n, row in enumerate(rows) if row is not None and n not in found.bad}
            rest = find(good, self._known, lambda number: _exactly(values, number))
        return with_unknown(found, rest, self.unknown, len(rows))


def _exactly(values: Sequence[bytes | None], number: int) -> dict[str, Any]:
    found: dict[str, Any] = parse_exactly(values[number] or b"")
    return found


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MOST_LEVELS):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [one for some in inner for one in some]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def parse(value: bytes | None, number: int, bad: dict[int, Bad]) -> dict[str, Any] | None:
    """Parse one object; if the value is not an object, return None and add the reason to `bad`."""
    if value is None:
        bad[number] = Bad("NullValue", "the record has no value")
        return None
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        bad[number] = Bad("NotJson", str(error))
        return None
    if value.count(b"[") + value.count(b"{") > _MOST_LEVELS and _too_deep(found):
        bad[number] = Bad("NotJson", f"the value has more than {_MOST_LEVELS} levels")
        return None
    if not isinstance(found, dict):
        bad[number] = Bad("NotAnObject", f"the value is a JSON {type(found).__name__}, need an object")
        return None
    return found
