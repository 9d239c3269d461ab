"""Reads Spark's options, which are texts by name, as numbers, flags, words and JSON."""

import json
from collections.abc import Mapping
from typing import Any

from spark_sink.errors import OptionError


def number(given: Mapping[str, str], name: str, default: int | None) -> int | None:
    """Read a whole number of 1 or more.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise OptionError(f"option {name!r}: {text!r}, need a whole number of 1 or more")
    return value


def fraction(given: Mapping[str, str], name: str, default: float) -> float:
    """Read a number of 0 or more.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise OptionError(f"option {name!r}: {text!r}, need a number of 0 or more")
    return value


def flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Read true or false.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name, str(default)).lower()
    if text not in {"true", "false"}:
        raise OptionError(f"option {name!r}: {text!r}, need true or false")
    return text == "true"


def choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Read one of some words; the first one is the default.

    Raises:
        OptionError: it is something else.
    """
    text = given.get(name, choices[0]).lower()
    if text not in choices:
        raise OptionError(f"option {name!r}: {text!r}, need one of {choices}")
    return text


def json_value(text: str, name: str) -> Any:  # noqa: ANN401 -- whatever the JSON text holds
    """Read a JSON text.

    Raises:
        OptionError: it is something else.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise OptionError(f"option {name!r}: {text!r} is not JSON ({error})") from error
