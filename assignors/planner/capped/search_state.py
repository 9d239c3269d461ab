"""The partitions of each capped topic on each reader during the search, and the distance of loads from their bounds."""

from dataclasses import dataclass, field

import numpy as np

from assignors.hashing.murmur3_hash import F64
from assignors.planner.capped.fairest_capped_loads import are_fairest
from assignors.planner.input_arrays import I32, I64, Bools
from assignors.planner.load_bounds import Band

Move = list[tuple[int, int, int, int]]
"""Hand-overs that are done together: (topic, giver, taker, partitions)."""
Key = tuple[bool, tuple[float, ...], int]


@dataclass(slots=True, kw_only=True)
class SearchState:
    """Pieces of topics on their readers; a piece is the part of one topic that one member has.

    Attributes:
        weights: of the members, shape (M,).
        band: bounds of the loads.
        caps: maximum number of different members of each topic, shape (T,). Topics without a cap share the row of the
            first of them that the same members read; their other rows are empty.
        may: which members subscribe to which topic, shape (T, M).
        owned: valid claims, shape (T, M).
        pieces: partitions of each topic on each member, shape (T, M).
        sets: partitions of each capped topic by their rack set, shape (T, K); empty where no member is off rack.
        off: which members are outside which rack set, shape (K, M).
        kind: members with the same weight and bounds have the same number, shape (M,).
        load: sums of the pieces, shape (M,).
        readers: number of members that read each topic, shape (T,).
        moved: valid claims that other members hold now.
        work: work done so far, in priced hand-overs; the search stops at a limit that is the same on every machine.
    """

    weights: F64
    band: Band
    caps: I32
    may: Bools
    owned: I64
    pieces: I64
    sets: I64 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    off: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    kind: I64 = field(init=False)
    load: I64 = field(init=False)
    readers: I64 = field(init=False)
    moved: int = field(init=False)
    work: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        bounds = np.c_[self.band.low, self.band.high, self.weights]
        self.kind = np.zeros(len(bounds), dtype=np.int64)
        if (bounds != bounds[:1]).any():
            self.kind[:] = np.unique(bounds, axis=0, return_inverse=True)[1].reshape(-1)
        self.reset(self.pieces)

    def reset(self, pieces: I64) -> None:
        """Replace all pieces."""
        self.pieces = pieces
        # Few cells are not 0: going through these takes less time than through all.
        topics, members = self.held()
        self.load = np.bincount(members, self.pieces[topics, members], len(self.weights)).astype(np.int64)
        self.readers = np.bincount(topics, minlength=len(pieces))
        claims = np.flatnonzero(self.owned.reshape(-1) != 0)
        self.moved = int(np.maximum(self.owned.reshape(-1)[claims] - pieces.reshape(-1)[claims], 0).sum())

    def held(self) -> tuple[I64, I64]:
        """Return topic and reader of each piece, by topic, then by reader."""
        topics, readers = np.divmod(np.flatnonzero(self.pieces.reshape(-1) != 0), self.pieces.shape[1])
        return topics, readers

    def take(self, topic: int, takers: I64, counts: I64) -> None:
        """Give partitions without an owner to these members: `counts` to each of `takers`, shape (N,)."""
        before = np.maximum(self.owned[topic] - self.pieces[topic], 0).sum()
        self.pieces[topic, takers] += counts
        self.load[takers] += counts
        self.readers[topic] = int((self.pieces[topic] > 0).sum())
        self.moved += int(np.maximum(self.owned[topic] - self.pieces[topic], 0).sum() - before)

    def give(self, topic: int, giver: int, taker: int, count: int) -> None:
        """Hand over partitions of a topic."""
        pieces, owned = self.pieces[topic], self.owned[topic]
        for member, more in ((giver, -count), (taker, count)):
            before = int(pieces[member])
            after = before + more
            self.readers[topic] += int(after > 0) - int(before > 0)
            self.moved += max(0, int(owned[member]) - after) - max(0, int(owned[member]) - before)
            pieces[member] = after
            self.load[member] += more

    def put(self, topic: int, members: I64, counts: I64) -> None:
        """Set the numbers of partitions, `counts`, of these members, shape (N,); the sum stays the same."""
        before = np.maximum(self.owned[topic] - self.pieces[topic], 0).sum()
        self.load[members] += counts - self.pieces[topic, members]
        self.pieces[topic, members] = counts
        self.readers[topic] = int((self.pieces[topic] > 0).sum())
        self.moved += int(np.maximum(self.owned[topic] - self.pieces[topic], 0).sum() - before)

    def apply(self, move: Move) -> None:
        """Do all hand-overs of a move."""
        for topic, giver, taker, count in move:
            self.give(topic, giver, taker, count)

    def undo(self, steps: list[Move]) -> None:
        """Undo the steps, the last one first."""
        for step in reversed(steps):
            for topic, giver, taker, count in reversed(step):
                self.give(topic, taker, giver, count)

    def outside_band(self) -> I64:
        """Return how far each load is outside its bounds, shape (M,); negative below."""
        out: I64 = np.maximum(self.load - self.band.high, 0) - np.maximum(self.band.low - self.load, 0)
        return out

    def is_fairest(self) -> bool:
        """Return whether the loads are proven to be the fairest that the caps allow, for members with equal weights."""
        if (self.weights != self.weights[0]).any():
            return False
        sizes = self.pieces.sum(axis=1)
        return are_fairest(self.load, sizes, np.minimum(np.minimum(self.caps, sizes), self.may.sum(axis=1)))

    def key(self) -> Key:
        """Return the values to minimise, in the order of the goals."""
        if not self.outside_band().any():
            return False, (), self.moved
        return True, tuple(np.sort(np.round(self.load / self.weights, 9))[::-1].tolist()), self.moved
