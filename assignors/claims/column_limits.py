"""What a table of claims can hold; what it cannot is refused before the database is asked.

Each database would refuse it in words of its own, or not at all: SQLite keeps a negative offset and a name with a NUL.
"""

import operator
import re

from assignors.clients.topic_names import TOPIC_NAMES, is_topic_name
from assignors.errors import ClaimsError

MOST_32 = (1 << 31) - 1
MOST_64 = (1 << 63) - 1
LONGEST_TEXT = 190
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,58}")  # with `_due` behind it no longer than PostgreSQL's names


def whole(what: str, value: object, least: int, most: int) -> int:
    """A whole number, as Python's own: drivers do not take numpy's.

    Raises:
        ClaimsError: it is none, or out of range.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # whether it can be one is the question
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        raise ClaimsError(f"{what}={value!r}, need a whole number, {least} to {most}")
    return number


def real(what: str, value: object, least: float, most: float) -> None:
    """Check a number that need not be whole.

    Raises:
        ClaimsError: it is none, or out of range; also where it is nan.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ClaimsError(f"{what}={value!r}, need a number, {least:g} to {most:g}")


def text(what: str, value: object) -> None:
    """Check what others read.

    Raises:
        ClaimsError: it is empty or too long, or has what a database cannot keep: a NUL, half a surrogate pair.
    """
    legal = isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT and "\0" not in value
    if not legal or any("\ud800" <= one <= "\udfff" for one in str(value)):
        raise ClaimsError(f"{what}={value!r}, need 1 to {LONGEST_TEXT} characters that UTF-8 has, none of them NUL")


def partition(topic: object, number: object) -> tuple[str, int]:
    """A topic's partition.

    Raises:
        ClaimsError: no topic can have this name, or no partition this number.
    """
    if not is_topic_name(topic):
        raise ClaimsError(f"topic {topic!r}: no topic has this name, need {TOPIC_NAMES}")
    return str(topic), whole(f"topic {topic!r}: partition", number, 0, MOST_32)


def table_name(value: object) -> None:
    """Check the name of the table.

    Raises:
        ClaimsError: it is none that all databases take unquoted.
    """
    if not isinstance(value, str) or not _TABLE.fullmatch(value):
        raise ClaimsError(f"table {value!r}: need 1 to 59 letters, digits and '_', the first no digit")
