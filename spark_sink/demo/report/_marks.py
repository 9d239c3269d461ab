"""Where the labels of events go, so that no label lies on another label or on another event's line."""

from collections.abc import Sequence
from dataclasses import dataclass

GAP_PX = 6.0


@dataclass(frozen=True, slots=True)
class Mark:
    """One event in the picture: its line at `x`, the label's width, both in the same unit."""

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Placed:
    """The lane of a label, counted upwards from 0, and the side of the line it stands on."""

    lane: int
    leftwards: bool


def place(marks: Sequence[Mark], right_edge: float) -> list[Placed]:
    """Place labels in lanes above a picture.

    A label stands right of its line, or left of it where the edge is too near. Lines end at their own label, so a label
    must only be higher than every line that it spans.

    Args:
        marks: in time order.
        right_edge: where the space ends.
    """
    leftwards = [mark.x + GAP_PX + mark.width > right_edge for mark in marks]
    # Two labels that span each other's line have no valid order: the left one turns to the left, too.
    for later in range(len(marks) - 1, -1, -1):
        for earlier in range(later):
            facing = leftwards[later] and not leftwards[earlier]
            if facing and _spans(marks, leftwards, earlier, later) and _spans(marks, leftwards, later, earlier):
                leftwards[earlier] = True
    below = [[j for j in range(len(marks)) if _above(marks, leftwards, i, j)] for i in range(len(marks))]
    lanes = [0] * len(marks)
    for _ in marks:  # the longest chain of labels above each other; each round settles at least one more
        lanes = [max((lanes[j] + 1 for j in lower), default=0) for lower in below]
    return [Placed(lane, left) for lane, left in zip(lanes, leftwards, strict=True)]


def _above(marks: Sequence[Mark], leftwards: Sequence[bool], label: int, other: int) -> bool:
    """Whether a label has to be higher than another event's label and line."""
    if _spans(marks, leftwards, label, other):
        return True
    if leftwards[label] or not leftwards[other] or _spans(marks, leftwards, other, label):
        return False
    # They face each other between their lines: either may be the higher one.
    between = marks[other].x - marks[label].x
    return 0 <= between < marks[label].width + marks[other].width + 3 * GAP_PX


def _spans(marks: Sequence[Mark], leftwards: Sequence[bool], label: int, line: int) -> bool:
    reach = marks[label].width + 2 * GAP_PX
    distance = marks[line].x - marks[label].x
    if leftwards[label]:
        return -reach <= distance <= 0 and line < label
    return 0 <= distance <= reach and line > label
