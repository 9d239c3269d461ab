"""Which topics the settings select: by name, or by a pattern that the whole name matches."""

import re
from collections.abc import Callable, Iterable


def selects(names: Iterable[str], pattern: str | None) -> Callable[[str], bool]:
    """Return a function that tells whether a topic is read.

    Args:
        names: topics by name.
        pattern: adds the topics whose whole name matches, except internal ones; None adds none.
    """
    named = frozenset(names)
    matches = None if pattern is None else re.compile(pattern).fullmatch
    return lambda topic: topic in named or bool(matches and not topic.startswith("__") and matches(topic))
