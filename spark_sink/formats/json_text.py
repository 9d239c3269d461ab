"""JSON text of decoded values, with every original digit."""

import base64
import json
import math
from decimal import Decimal
from typing import Any

import orjson


def parse_exactly(value: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    """Parse JSON that orjson accepts; numbers other than 64-bit integers become decimals.

    This is several times slower than orjson, which converts these numbers to doubles and so loses digits.
    """
    return json.loads(value.decode(), parse_float=Decimal, parse_int=_integer)


def _integer(text: str) -> int | Decimal:
    number = int(text)
    return number if -(2**63) <= number < 2**64 else Decimal(number)


def json_text(value: object) -> str:
    """Write a value as JSON.

    Bytes become base64. Doubles that JSON lacks become the texts "NaN", "Infinity" and "-Infinity", as in Protobuf's
    JSON.
    """
    return orjson.dumps(_plain(value), default=_digits).decode()


def has_double(value: object) -> bool:
    """Return whether a value read from JSON has a double in it, which may have lost digits."""
    if isinstance(value, dict):
        return any(map(has_double, value.values()))
    if isinstance(value, list):
        return any(map(has_double, value))
    return type(value) is float


def _digits(value: object) -> orjson.Fragment:
    return orjson.Fragment(str(value))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() >= 64:  # noqa: PLR2004 -- bits
        return Decimal(value)
    return value
