"""Valid names of topics."""

import re

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
TOPIC_NAMES = "1 to 249 letters, digits, '.', '_' and '-', and not '.' or '..' alone"
"""The rule in words, for messages."""


def is_topic_name(name: object) -> bool:
    """Return whether Kafka accepts it as the name of a topic (`Topic.validate` of its source)."""
    return isinstance(name, str) and _LEGAL.fullmatch(name) is not None and name not in {".", ".."}


def topic_name(name: str) -> str:
    """Check a name, and return it; for models of settings.

    Raises:
        ValueError: it is not a valid name.
    """
    if not is_topic_name(name):
        raise ValueError(f"no topic is named {name!r}: need {TOPIC_NAMES}")
    return name
