"""Places the labels of events, so that no label covers another label or another event's line."""

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import count

GAP_PX = 6.0


@dataclass(frozen=True, slots=True)
class Mark:
    """One event in the picture: `x` of its line and the width of its label, in the same unit."""

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Placed:
    """The lane of a label, counted upwards from 0, and its side of the line."""

    lane: int
    leftwards: bool


def place(marks: Sequence[Mark], right_edge: float) -> list[Placed]:
    """Place labels in lanes above a picture.

    A label is to the right of its line, or to the left if the edge is too near. Each line ends at its own label, so a
    label must be above every line that it spans.

    Args:
        marks: in time order.
        right_edge: right end of the space.
    """
    leftwards = [mark.x + GAP_PX + mark.width > right_edge for mark in marks]
    # Two labels that span each other's line have no valid order, so the left one moves to the left of its line.
    for later in range(len(marks) - 1, -1, -1):
        for earlier in range(later):
            facing = leftwards[later] and not leftwards[earlier]
            if facing and _spans(marks, leftwards, earlier, later) and _spans(marks, leftwards, later, earlier):
                leftwards[earlier] = True
    spanned = {i: [j for j in range(len(marks)) if _spans(marks, leftwards, i, j)] for i in range(len(marks))}
    lanes: dict[int, int] = {}
    for i in TopologicalSorter(spanned).static_order():
        begin, end = _extent(marks[i], leftwards=leftwards[i])
        others = {j: _extent(marks[j], leftwards=leftwards[j]) for j in lanes}
        taken = {lanes[j] for j, (low, high) in others.items() if low < end and begin < high}
        lane = max((lanes[j] + 1 for j in spanned[i]), default=0)
        lanes[i] = next(free for free in count(lane) if free not in taken)
    return [Placed(lanes[i], left) for i, left in enumerate(leftwards)]


def _extent(mark: Mark, *, leftwards: bool) -> tuple[float, float]:
    reach = mark.width + 2 * GAP_PX
    return (mark.x - reach, mark.x) if leftwards else (mark.x, mark.x + reach)


def _spans(marks: Sequence[Mark], leftwards: Sequence[bool], label: int, line: int) -> bool:
    """Return whether a label spans the line of another event; of two at the same place, the first spans."""
    begin, end = _extent(marks[label], leftwards=leftwards[label])
    on_its_side = line < label if leftwards[label] else line > label
    return on_its_side and begin <= marks[line].x <= end
