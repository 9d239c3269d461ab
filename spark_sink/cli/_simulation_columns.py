"""The columns of `azimuth simulate` in words, and the time over the objective that workers cannot change."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assignors.simulation import Outcome

_SHOWN = 0.000_05  # a smaller part of the time is 0.00 % in the table


def explained(outcomes: "Sequence[Outcome]", slo_s: float) -> list[str]:
    """Return one line for each column or pair of columns, and one for each trace with unavoidable time.

    Args:
        outcomes: all rows of the table.
        slo_s: the objective in seconds.
    """
    return [
        f"over SLO: part of the time in which some record was older than the objective of {slo_s:g} s",
        "avoidable: the same, without delays that no number of workers changes",
        "worker hours: sum of the workers over time; x oracle: divided by the oracle's, which knows the load to come",
        "resizes: changes of the number; flips: changes of their direction",
        "moved: partitions that changed their worker; lost: records that retention deleted unread",
        *_unavoidable(outcomes),
    ]


def _unavoidable(outcomes: "Sequence[Outcome]") -> list[str]:
    found: dict[str, list[float]] = {}
    for one in outcomes:
        found.setdefault(one.trace, []).append(one.score.over_slo - one.score.over_slo_avoidable)
    return [
        f"{trace}: for {_between(parts)} of the time no number of workers keeps the objective: there was no reader, or "
        "a partition was too hot for one worker"
        for trace, parts in found.items()
        if max(parts) >= _SHOWN
    ]


def _between(parts: Sequence[float]) -> str:
    least, most = f"{min(parts):.2%}", f"{max(parts):.2%}"
    return least if least == most else f"{least} to {most}"
