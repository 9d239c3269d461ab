"""Rule for leaders that return to the zone: records follow only when a leader has stayed for a while. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from producer.decisions.leader_locality import Locality, Reason


@dataclass(frozen=True, slots=True)
class LocalityInUse:
    """The locality that a topic uses now, and the time since which a better one is available.

    Attributes:
        locality: the partitions in use.
        better_since: time at which a better set was first seen, seconds of a monotonic clock; None if none is better.
    """

    locality: Locality
    better_since: float | None = None


def settle(in_use: LocalityInUse | None, levels: Sequence[Locality], now: float, hold_s: float) -> LocalityInUse:
    """Adopt a worse set immediately, a better one only after `hold_s`, so that a flapping leader moves no records back.

    Args:
        in_use: the previous locality, None at first.
        levels: every non-empty level of the topic now, best first (see `levels_of`).
        now: seconds of a monotonic clock.
        hold_s: time that a better set must last, seconds.

    Returns:
        The locality to use from now on.
    """
    best = levels[0]
    if in_use is None or best.rank >= in_use.locality.rank:
        return LocalityInUse(best)
    kept = next((level for level in levels if level.rank == in_use.locality.rank), None)
    since = now if in_use.better_since is None else in_use.better_since
    if kept is None or kept.reason is Reason.NO_LEADER or now - since >= hold_s:
        return LocalityInUse(best)
    # The reason of the level in use stays: a local leader has returned, but records still go elsewhere.
    return LocalityInUse(Locality(kept.candidates, in_use.locality.reason, kept.rank), since)
