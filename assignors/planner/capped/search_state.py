"""Pieces of capped topics on the way to their readers: what each holds, and what that costs."""

from dataclasses import dataclass, field

import numpy as np

from assignors.hashing.hash import F64
from assignors.planner.input_arrays import I32, I64, Bools
from assignors.planner.load_bounds import Band

Step = list[tuple[int, int, int, int]]
"""Hand-overs that belong together: (topic, giver, taker, partitions)."""
Key = tuple[bool, tuple[float, ...], int]


@dataclass(slots=True, kw_only=True)
class Seats:
    """Pieces of topics on the way to their readers.

    Attributes:
        weights: of the members, shape (M,).
        band: loads of a balanced plan;
        caps: most distinct members of each topic, shape (T,). Topics without a cap stand in the row of the first of
            them that the same members read; their other rows are empty.
        may: who subscribed to which topic, shape (T, M).
        owned: valid claims, shape (T, M).
        pieces: partitions of each topic on each member, shape (T, M).
        sets: partitions of each capped topic by their rack set, shape (T, K); empty where nobody is off.
        off: who is off which rack set, shape (K, M).
        load: sums of the pieces, shape (M,).
        readers: how many members read each topic, shape (T,).
        moved: claims that are with others now.
        looked: hand-overs that were looked at so far.
    """

    weights: F64
    band: Band
    caps: I32
    may: Bools
    owned: I64
    pieces: I64
    sets: I64 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    off: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    load: I64 = field(init=False)
    readers: I64 = field(init=False)
    moved: int = field(init=False)
    looked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.reset(self.pieces)

    def reset(self, pieces: I64) -> None:
        """Let these be the pieces."""
        self.pieces = pieces
        self.load = self.pieces.sum(axis=0)
        self.readers = (self.pieces > 0).sum(axis=1)
        self.moved = int(np.maximum(self.owned - self.pieces, 0).sum())

    def take(self, topic: int, takers: I64, counts: I64) -> None:
        """Give partitions that nobody had to these members."""
        before = np.maximum(self.owned[topic] - self.pieces[topic], 0).sum()
        self.pieces[topic, takers] += counts
        self.load[takers] += counts
        self.readers[topic] = int((self.pieces[topic] > 0).sum())
        self.moved += int(np.maximum(self.owned[topic] - self.pieces[topic], 0).sum() - before)

    def give(self, topic: int, giver: int, taker: int, count: int) -> None:
        """Hand over so many partitions."""
        pieces, owned = self.pieces[topic], self.owned[topic]
        for member, more in ((giver, -count), (taker, count)):
            before = int(pieces[member])
            after = before + more
            self.readers[topic] += int(after > 0) - int(before > 0)
            self.moved += max(0, int(owned[member]) - after) - max(0, int(owned[member]) - before)
            pieces[member] = after
            self.load[member] += more

    def put(self, topic: int, members: I64, counts: I64) -> None:
        """Give these members so many partitions, as many as they had in all."""
        before = np.maximum(self.owned[topic] - self.pieces[topic], 0).sum()
        self.load[members] += counts - self.pieces[topic, members]
        self.pieces[topic, members] = counts
        self.readers[topic] = int((self.pieces[topic] > 0).sum())
        self.moved += int(np.maximum(self.owned[topic] - self.pieces[topic], 0).sum() - before)

    def apply(self, step: Step) -> None:
        """Do all of it."""
        for topic, giver, taker, count in step:
            self.give(topic, giver, taker, count)

    def undo(self, steps: list[Step]) -> None:
        """Take the steps back, the last one first."""
        for step in reversed(steps):
            for topic, giver, taker, count in reversed(step):
                self.give(topic, taker, giver, count)

    def beside(self) -> I64:
        """How far each load is beside its bounds, shape (M,); negative below."""
        out: I64 = np.maximum(self.load - self.band.high, 0) - np.maximum(self.band.low - self.load, 0)
        return out

    def key(self) -> Key:
        """What is to be small, in the order of the goals."""
        if not self.beside().any():
            return False, (), self.moved
        return True, tuple(np.sort(np.round(self.load / self.weights, 9))[::-1].tolist()), self.moved
