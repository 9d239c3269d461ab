"""Rates of arrivals that are published as weights of topics: relative to each other, and changed seldom. Pure.

Each published change is a new view for all agents of a fleet and may move topics. So a rate changes only if it differs
by more than a quarter from the published one, and all rates together change at most every 15 minutes. A load that rises
and falls with the day on all topics changes nothing, because rates are compared after division by the median ratio of
the measured to the published rates.
"""

import statistics
from collections.abc import Mapping
from typing import Final

from assignors.scaling.lag import per_second
from assignors.scaling.observation import Window

_CHANGE: Final = 1.25
_INTERVAL_S: Final = 900.0
_SPAN_S: Final = 600.0  # a shorter window, as after a restart without a shared store, is too short to show a rate
_DIGITS: Final = 3
_IDLE: Final = 64
"""Rates below this part of the mean count as equal: few records arrive in a window, so their rates vary by chance."""


class TopicRates:
    """The rates of a group's topics; used by one thread.

    A round decides by the rates that the previous round measured, so that all topics are compared in the same unit.
    """

    def __init__(self) -> None:
        self._measured: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._changed_s: float | None = None
        self._due: bool | None = None
        self._unit = 1.0
        self._idle = 0.0

    def begin(self, published: Mapping[str, float | None]) -> None:
        """Begin a round.

        Args:
            published: the rates in force by topic, None without a rate.
        """
        self._due = None
        self._before = dict(self._measured)
        measured = {topic: self._before[topic] for topic in published if topic in self._before}
        ratios = [rate / measured[topic] for topic, rate in published.items() if rate and measured.get(topic)]
        self._unit = statistics.median(ratios) if ratios else 1.0
        self._idle = self._unit * sum(measured.values()) / max(len(measured), 1) / _IDLE

    def next(self, topic: str, published: float | None, seen: Window) -> float | None:
        """Return the rate to publish.

        Args:
            topic: name of the topic.
            published: its rate in force; None without a rate.
            seen: its observations.

        Returns:
            Records per second in the unit of the first published rates; None while no rate is known.
        """
        if (new := _measured(seen)) is not None:
            self._measured[topic] = new
        measured = self._before.get(topic)
        if new is None or measured is None:
            return published
        if self._due is None:
            # A clock that went back must not stop the changes.
            self._due = self._changed_s is None or not 0 <= seen.now_s - self._changed_s < _INTERVAL_S
        if published is None:
            return _rounded(measured * self._unit)
        now = measured * self._unit
        if not self._due or not _differ(max(published, self._idle), max(now, self._idle)):
            return published
        self._changed_s = seen.now_s
        return _rounded(now)


def _measured(seen: Window) -> float | None:
    """Return the rate over the window; None if the window is too short."""
    if seen.now_s - float(seen.times_s[0]) < _SPAN_S:
        return None
    return float(per_second(seen.end, seen.times_s, seen.now_s - float(seen.times_s[0])).sum())


def _differ(one: float, other: float) -> bool:
    return max(one, other) > _CHANGE * min(one, other)


def _rounded(rate: float) -> float:
    return float(f"{rate:.{_DIGITS}g}")
