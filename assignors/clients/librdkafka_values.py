"""Values of librdkafka's properties, as its clients read them."""

import re
from collections.abc import Mapping
from typing import Any, Final

TRUE: Final = frozenset({"true", "t", "1"})
"""Words for true, in any case."""
FALSE: Final = frozenset({"false", "f", "0"})
"""Words for false, in any case."""
_BLANKS: Final = " \t\n\v\f\r"  # of C's isspace; Python drops others, too
_HALF_A_LETTER: Final = re.compile("[\ud800-\udfff]")
_OF_TOPICS: Final = "default.topic.config"
_NUMBER: Final = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*))", re.ASCII)  # as C's strtol


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without confluent-kafka's deprecated `default.topic.config`.

    Its properties replace those beside it, also those that are not of topics.
    """
    of_topics = config.get(_OF_TOPICS)
    if not isinstance(of_topics, Mapping):  # the client refuses it
        return dict(config)
    return {name: value for name, value in {**config, **of_topics}.items() if name != _OF_TOPICS}


def text(given: object) -> str:
    """Return a value as text, without blanks before it; empty if there is none."""
    return "" if given is None else str(given).lstrip(_BLANKS)


def is_readable(given: object) -> bool:
    """Whether librdkafka reads all of a value: as C text it ends at a null character, and half a letter is no text."""
    said = str(given)
    return "\0" not in said and not _HALF_A_LETTER.search(said)


def whole_number(given: object, default: int) -> int:
    """Read a number: also hexadecimal or octal; what follows it is dropped, such as a fraction or a unit.

    Args:
        given: the property's value; None if it is not set.
        default: for no value, and for one that librdkafka refuses itself.
    """
    if (found := _NUMBER.match(str(given))) is None:
        return default
    digits = found[1].lower()
    return int(digits, 16 if "x" in digits else 8 if digits.lstrip("+-").startswith("0") else 10)
