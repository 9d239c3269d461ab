"""Limits of the values in a table of claims, checked before a statement runs.

Each database would report an invalid value in its own words, or not at all: SQLite accepts a negative offset and a name
with a NUL.
"""

import operator
import re

from assignors.clients.topic_names import TOPIC_NAMES, is_topic_name
from assignors.errors import ClaimsError

MOST_32 = (1 << 31) - 1
MOST_64 = (1 << 63) - 1
LONGEST_TEXT = 190
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,58}")  # with the suffix `_due` within PostgreSQL's limit for names


def whole(what: str, value: object, least: int, most: int) -> int:
    """Return a whole number as a Python int, because drivers do not accept numpy's.

    Raises:
        ClaimsError: it is not a whole number, or out of range.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # raises TypeError if it is not a whole number
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        raise ClaimsError(f"{what}={value!r}, need a whole number, {least} to {most}")
    return number


def real(what: str, value: object, least: float, most: float) -> None:
    """Check a number that need not be whole.

    Raises:
        ClaimsError: it is not a number, nan, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ClaimsError(f"{what}={value!r}, need a number, {least:g} to {most:g}")


def text(what: str, value: object) -> None:
    """Check a text that other processes read.

    Raises:
        ClaimsError: it is empty or too long, or has a character that a database cannot store: NUL, a lone surrogate.
    """
    legal = isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT and "\0" not in value
    if not legal or any("\ud800" <= one <= "\udfff" for one in str(value)):
        raise ClaimsError(f"{what}={value!r}, need 1 to {LONGEST_TEXT} characters that UTF-8 has, none of them NUL")


def partition(topic: object, number: object) -> tuple[str, int]:
    """Check and return a topic's partition.

    Raises:
        ClaimsError: the name of the topic or the number of the partition is invalid.
    """
    if not is_topic_name(topic):
        raise ClaimsError(f"topic {topic!r}: no topic has this name, need {TOPIC_NAMES}")
    return str(topic), whole(f"topic {topic!r}: partition", number, 0, MOST_32)


def table_name(value: object) -> None:
    """Check the name of the table.

    Raises:
        ClaimsError: not all databases accept it unquoted.
    """
    if not isinstance(value, str) or not _TABLE.fullmatch(value):
        raise ClaimsError(f"table {value!r}: need 1 to 59 letters, digits and '_', the first no digit")
