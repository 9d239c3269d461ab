"""Workers per topic: the maximum number of different members that may read it."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from assignors.errors import NO_PATTERN, WorkersError

Workers = int | Mapping[str, int | None] | None
"""One number for all topics, or by topic name or pattern; None for all members.

A key that is a topic's name counts for that topic. A key with a character that no topic name can have is a regular
expression for the whole name, in the order of the mapping; `"*"` is every topic. No match: all members.
"""

NO_CAP = np.iinfo(np.int32).max
_NAME = re.compile(r"[a-zA-Z0-9._-]*")


def check_workers(workers: Workers) -> None:
    """Check a setting of workers per topic.

    Raises:
        WorkersError: a number below 1, not a whole number, or a pattern that is not a regular expression.
    """
    if isinstance(workers, Mapping):
        for key, number in workers.items():
            _check_number(number, f"workers for {key!r}")
            _pattern(key)
    else:
        _check_number(workers, "workers")


def worker_caps(workers: Workers, topics: Sequence[str]) -> NDArray[np.int32]:
    """Return the maximum number of different members of each topic, `NO_CAP` if all may read it.

    Raises:
        WorkersError: as `check_workers`.
    """
    check_workers(workers)
    if not isinstance(workers, Mapping):
        return np.full(len(topics), _cap(workers), dtype=np.int32)
    patterns = [(p, number) for key, number in workers.items() if (p := _pattern(key)) is not None]
    caps = np.full(len(topics), NO_CAP, dtype=np.int32)
    for i, topic in enumerate(topics):
        if topic in workers:
            caps[i] = _cap(workers[topic])
        else:
            caps[i] = _cap(next((number for p, number in patterns if p.fullmatch(topic)), None))
    return caps


def _cap(number: int | None) -> int:
    return NO_CAP if number is None else min(number, NO_CAP)


def _check_number(number: object, where: str) -> None:
    if number is None:
        return
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise WorkersError(f"{where}: {number!r}, need a whole number, 1 or more (None for all)")


def _pattern(key: object) -> re.Pattern[str] | None:
    if not isinstance(key, str):
        raise WorkersError(f"workers for {key!r}: need a topic name or a pattern as text")
    if _NAME.fullmatch(key):
        return None
    try:
        return re.compile(".*" if key == "*" else key)
    except NO_PATTERN as error:
        raise WorkersError(f"workers for {key!r}: not a regular expression ({error})") from error
