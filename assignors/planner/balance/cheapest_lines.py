"""The cheapest way to each kind over the members, and to each member over the kinds: a half round of Bellman-Ford.

Where most members may read a kind, costs are dense arrays of members x kinds. Where few may, as with worker caps, only
the allowed cells are gone through: 10 of 1,000 members. Both choose the same ways, the first of equally cheap ones.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from assignors.planner.input_arrays import I64, Bools

_FEW: Final = 8  # cells for each allowed one, from which single cells are faster than whole arrays
_NEVER: Final = 1 << 60


class Lines(Protocol):
    """The allowed cells, as a line for each kind or for each member."""

    def costs(self, dense: I64) -> I64:
        """Select costs, shape (M, K), for `cheapest`; the result is new where single cells are selected."""

    def cheapest(self, costs: I64, potentials: I64) -> tuple[I64, I64]:
        """Find the cheapest way into each line.

        Args:
            costs: from `costs`, changed cell by cell or not.
            potentials: cost of the way to each of the others, members or kinds.

        Returns:
            For each line the other from which the way comes, the first of equally cheap ones, and the cost of the way;
            of a line without a way any other, and a cost that is higher than any way's.
        """


@dataclass(frozen=True, slots=True)
class WholeLines:
    """All cells, allowed or not; those that are not have a prohibitive cost."""

    by_kind: bool

    def costs(self, dense: I64) -> I64:
        """Take the costs as they are."""
        return dense

    def cheapest(self, costs: I64, potentials: I64) -> tuple[I64, I64]:
        """Find the cheapest way into each line."""
        axis = 0 if self.by_kind else 1
        through = potentials[:, None] + costs if self.by_kind else potentials + costs
        best = through.argmin(axis=axis)
        lines = np.arange(len(best))
        return best, through[best, lines] if self.by_kind else through[lines, best]


@dataclass(frozen=True, slots=True)
class SingleCells:
    """The allowed cells, line after line.

    Attributes:
        cells: numbers of the cells in the flat array of members x kinds, by line, then by the other, shape (E,).
        others: the other end of each cell, shape (E,).
        lines: lines that have a cell, ascending, shape (L,).
        starts: first cell of each of these, shape (L,).
        count: number of all lines.
    """

    cells: I64
    others: I64
    lines: I64
    starts: I64
    count: int

    def costs(self, dense: I64) -> I64:
        """Select the costs of the cells, shape (E,)."""
        out: I64 = dense.reshape(-1)[self.cells]
        return out

    def cheapest(self, costs: I64, potentials: I64) -> tuple[I64, I64]:
        """Find the cheapest way into each line."""
        best, cost = np.zeros(self.count, dtype=np.int64), np.full(self.count, _NEVER)
        if self.lines.size:
            through = potentials[self.others] + costs
            least = np.minimum.reduceat(through, self.starts)
            least_at = np.flatnonzero(through == self.repeat(least))
            best[self.lines] = self.others[least_at[np.searchsorted(least_at, self.starts)]]
            cost[self.lines] = least
        return best, cost

    def repeat(self, values: I64) -> I64:
        """Repeat one value of each line that has a cell for all its cells."""
        return np.repeat(values, np.diff(np.r_[self.starts, len(self.cells)]))

    def before(self, amounts: I64) -> I64:
        """Sum the amounts of the earlier cells of the same line, shape (E,)."""
        earlier = np.cumsum(amounts) - amounts
        out: I64 = earlier - self.repeat(earlier[self.starts])
        return out


def lines_of(allowed: Bools) -> tuple[Lines, Lines]:
    """Return the lines of the kinds and those of the members, in the form that is faster for these cells.

    Args:
        allowed: which members may read which kind, shape (M, K).
    """
    if np.count_nonzero(allowed) * _FEW > allowed.size:
        return WholeLines(by_kind=True), WholeLines(by_kind=False)
    members, kinds = np.nonzero(allowed)
    by_kind = np.argsort(kinds, kind="stable")
    width = allowed.shape[1]
    return (
        single_cells(kinds[by_kind], members[by_kind], (members * width + kinds)[by_kind], width),
        single_cells(members, kinds, members * width + kinds, len(allowed)),
    )


def single_cells(lines: I64, others: I64, cells: I64, count: int) -> SingleCells:
    """Return the cells as lines; they are sorted by line."""
    starts = np.flatnonzero(np.r_[True, lines[1:] != lines[:-1]][: len(lines)])
    return SingleCells(cells, others, lines[starts], starts, count)
