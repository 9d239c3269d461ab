"""Reads Spark's options as numbers, times, sizes, flags, words and JSON.

The given options are texts by name in lower case; a name is spelled here as in the documentation, and so in messages.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from spark_sink.errors import OptionError

Word = TypeVar("Word", bound=str)

MOST = 2**63 - 1  # Kafka's offsets and times
MOST_MS = 2**31 - 1  # Kafka's timeouts

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,40}\s*")  # int() takes "1_7" and Arabic digits, too
_AMOUNT = re.compile(r"([0-9]{1,18})([a-z]*)")
_SECONDS = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_POWERS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_BYTES = {name + end: 1024**power for name, power in _POWERS.items() for end in ("", "b")} | {"": 1}


def number(given: Mapping[str, str], name: str, default: int | None, least: int = 1, most: int = MOST) -> int | None:
    """Read a whole number from `least` to `most`.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name.lower())
    if text is None:
        return default
    value = whole(text)
    if value is None or value < least:
        raise OptionError(f"option {name!r}: {text!r}, need a whole number of {least} or more")
    if value > most:
        raise OptionError(f"option {name!r}: {text!r}, need a whole number of {most} or less")
    return value


def whole(text: str) -> int | None:
    """Return the whole number of a text; None where it is something else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def fraction(given: Mapping[str, str], name: str, default: float) -> float:
    """Read a number of 0 or more.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name.lower(), str(default))
    try:
        value = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise OptionError(f"option {name!r}: {text!r}, need a finite number of 0 or more")
    return value


def duration_s(given: Mapping[str, str], name: str, default: float) -> float:
    """Read a time in Spark's notation, such as `15m`, in seconds; a bare number is in ms.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name.lower())
    if text is None:
        return default
    amount, unit = _amount(text)
    if unit not in _SECONDS:
        raise OptionError(f"option {name!r}: {text!r}, need a time as '10s', '15m' or '1h'")
    return amount * float(_SECONDS[unit])


def size_bytes(given: Mapping[str, str], name: str, default: int | None) -> int | None:
    """Read a size of 1 byte or more in Spark's notation, such as `512m`; a bare number is in bytes.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name.lower())
    if text is None:
        return default
    amount, unit = _amount(text)
    if unit not in _BYTES or not amount:
        raise OptionError(f"option {name!r}: {text!r}, need a size as '512m' or '2g', or a number of bytes")
    return amount * int(_BYTES[unit])


def flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Read true or false.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name.lower(), str(default)).lower()
    if text not in {"true", "false"}:
        raise OptionError(f"option {name!r}: {text!r}, need true or false")
    return text == "true"


def choice(given: Mapping[str, str], name: str, choices: tuple[Word, ...]) -> Word:
    """Read one of some words; the first one is the default.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name.lower(), choices[0]).lower()
    for one in choices:
        if one == text:
            return one
    raise OptionError(f"option {name!r}: {text!r}, need one of {', '.join(filter(None, choices))}")


def json_value(text: str, name: str) -> Any:  # noqa: ANN401 -- whatever the JSON text holds
    """Read a JSON text.

    Raises:
        OptionError: it is something else, or an object has a key twice, of which one would have no effect.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise OptionError(f"option {name!r}: {max(keys, key=keys.count)!r} is there twice; leave one out")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"option {name!r}: {text!r} is not JSON ({error})") from error


def addresses(text: str, place: str) -> list[str]:
    """Read the address of a table, or a JSON list of addresses.

    Args:
        text: begins with a bracket if it is a list.
        place: where it was found, for the message.

    Raises:
        OptionError: it begins as a list, and is none.
    """
    try:
        found = json.loads(text) if text.startswith("[") else [text]
    except (ValueError, RecursionError):
        found = []
    if not found or not all(isinstance(one, str) for one in found):
        raise OptionError(f"{place}: {text!r}, need the address of a table, or a JSON list of addresses")
    return list(found)


def group_name(text: str) -> str:
    """Read the name of the consumer group, which is not empty.

    Raises:
        OptionError: it begins with a space, which librdkafka leaves out, and kafka-python and the tables do not.
    """
    if text[0].isspace():
        raise OptionError(f"option 'kafka.group.id': {text!r} begins with a space")
    return text


def _amount(text: str) -> tuple[int, str]:
    """Return the number and the unit of a text such as `15m`; any other text has the unit "?", which does not exist."""
    found = _AMOUNT.fullmatch(text.strip().lower())
    return (int(found[1]), found[2]) if found else (0, "?")
