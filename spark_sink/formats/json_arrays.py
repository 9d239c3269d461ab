"""Converts parsed JSON into Arrow arrays strictly: Arrow itself would convert 1.5 to 1, and 5 to a date."""

import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.formats.arrow_columns import cells_of
from spark_sink.formats.json_text import has_double, json_text

_NULL = type(None)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_EXACT = Context(prec=76, traps=[Inexact, InvalidOperation])


class InexactError(Exception):
    """A double is in a column that needs every digit: the values must be parsed again, exactly."""


class JsonArrays:
    """Creates arrays, and records whether a struct has a field that its type lacks.

    Args:
        texts: text columns accept any value, as JSON text if it is not a string.
    """

    def __init__(self, *, texts: bool) -> None:
        self._texts = texts
        self.unknown = False

    def make(self, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        """Create one array.

        Raises:
            InexactError: a double is to become a decimal or a text.
            TypeError, ValueError, ArithmeticError, pyarrow.ArrowException: a value does not fit.
        """
        kinds = set(map(type, values))
        kinds.discard(_NULL)
        if pa.types.is_string(kind) and self._texts and not kinds <= {str}:
            return pa.array([one if one is None or type(one) is str else _text(one) for one in values], kind)
        if not kinds <= _allowed(kind):
            raise TypeError(f"JSON has {' and '.join(sorted({_NAMES[one] for one in kinds}))} here")
        for check, convert in _CONVERSIONS:
            if check(kind):
                return convert(self, values, kind, kinds)
        return pa.array(values, kind)

    def _struct(self, values: Sequence[Any], kind: pa.DataType, _kinds: set[type]) -> pa.Array:
        # Field by field, so that each field is checked with the same rules.
        names = [one.name for one in kind]
        if not set().union(*filter(None, values)) <= set(names):
            self.unknown = True
        mask = pa.array([value is None for value in values], pa.bool_())
        cells = cells_of(values, names)
        fields = [self.make(inner, one.type) for inner, one in zip(cells, kind, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)

    def _list(self, values: Sequence[Any], kind: pa.DataType, _kinds: set[type]) -> pa.Array:
        flat = self.make([one for value in values for one in value or ()], kind.value_type)
        offsets, at = [0], 0
        for value in values:
            at += len(value or ())
            offsets.append(at)
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=kind, mask=mask)

    def _decimal(self, values: Sequence[Any], kind: pa.DataType, kinds: set[type]) -> pa.Array:
        if float in kinds:
            raise InexactError
        unit = Decimal((0, (1,), -kind.scale))
        return pa.array([None if one is None else _decimal(one).quantize(unit, context=_EXACT) for one in values], kind)

    def _float(self, values: Sequence[Any], kind: pa.DataType, _kinds: set[type]) -> pa.Array:
        try:
            found = pa.array(values, kind)
        except (pa.ArrowException, TypeError):
            # Arrow refuses integers that a double rounds, but JSON has only one kind of number.
            found = pa.array([None if one is None else float(one) for one in values], kind)
        if pa.types.is_float32(kind) and pc.any(pc.is_inf(found)).as_py():
            raise ValueError("the number is too large for a float")
        return found

    def _time(self, values: Sequence[Any], kind: pa.DataType, _kinds: set[type]) -> pa.Array:
        return pa.array(values, pa.string()).cast(kind)


def _text(value: object) -> str:
    if has_double(value):
        raise InexactError
    return json_text(value)


def _decimal(value: str | int | Decimal) -> Decimal:
    # Arrow's own cast from text crashes the process on an exponent such as 1e-999999999.
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError("the text is not a number")
    return Decimal(value) or Decimal(0)


_Convert = Callable[[JsonArrays, Sequence[Any], pa.DataType, set[type]], pa.Array]
_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], _Convert], ...] = (
    (pa.types.is_floating, JsonArrays._float),  # noqa: SLF001 -- this module's own
    (pa.types.is_struct, JsonArrays._struct),  # noqa: SLF001 -- this module's own
    (pa.types.is_list, JsonArrays._list),  # noqa: SLF001 -- this module's own
    (pa.types.is_decimal, JsonArrays._decimal),  # noqa: SLF001 -- this module's own
    (pa.types.is_timestamp, JsonArrays._time),  # noqa: SLF001 -- this module's own
    (pa.types.is_date, JsonArrays._time),  # noqa: SLF001 -- this module's own
)

_ALLOWED: tuple[tuple[Callable[[pa.DataType], bool], set[type]], ...] = (
    (pa.types.is_boolean, {bool}),
    (pa.types.is_integer, {int}),
    (pa.types.is_floating, {int, float, Decimal}),
    (pa.types.is_decimal, {int, str, float, Decimal}),
    (pa.types.is_struct, {dict}),
    (pa.types.is_list, {list}),
)
_NAMES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    Decimal: "a number",
    str: "a string",
    dict: "an object",
    list: "an array",
}


def _allowed(kind: pa.DataType) -> set[type]:
    """Return the Python types that JSON values of a column may have."""
    return next((kinds for check, kinds in _ALLOWED if check(kind)), {str})
