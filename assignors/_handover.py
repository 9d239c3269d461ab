"""Hand-overs between the readers of capped topics: into the bounds of the loads, and back to who owned.

A piece is what one reader has of a topic. A part of it can go to another reader of the topic, or to a newcomer where a
seat is free; otherwise a newcomer takes the whole piece. Each step takes the hand-over, or the exchange of two pieces,
that brings the loads nearest for the fewest claims that move. Then each piece that left its owner is tried there again,
and what that breaks is mended: kept where fewer claims move in the end (iterated local search).
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from assignors._problem import I64
from assignors._seats import Seats, Step

_NEARER: Final = 1 << 20
_NEVER: Final = 1 << 62
_LEAST: Final = 1e-9
_TRIES: Final = 8  # fullest and emptiest members that are looked at in a step
_FEW: Final = 3  # of them, those that exchange pieces
_MENDING: Final = 8  # steps to mend what giving a piece back broke
_MANY: Final = 8  # members beside their bounds: for more, one look finds many hand-overs
_LOOK: Final = 2_000  # hand-overs that could be priced in the time that a look takes anyway
_MIXED: Final = 1009
_WIDE: Final = 4  # of the fullest, for such a look
LOOKS: Final = 4_000_000
"""Most hand-overs that are looked at to bring loads near to their bounds, and as many again to bring them there: a
bound on the work of a leader whose heartbeats wait, about a second each."""
SEARCH: Final = 2_000_000
"""The same to find fewer moves. A third where loads are beside their bounds, which often cannot be mended."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Hand-overs that may be done, one a row, and what goes the other way in exchange (topic -1: nothing)."""

    topic: I64
    giver: I64
    taker: I64
    count: I64
    back: I64
    back_count: I64

    def without(self, topic: int, member: int) -> "Steps":
        """Leave out those by which the member gives of the topic."""
        stays = ((self.topic == topic) & (self.giver == member)) | ((self.back == topic) & (self.taker == member))
        if not stays.any():
            return self
        return Steps(*(getattr(self, f.name)[~stays] for f in fields(self)))

    def first(self, count: int) -> "Steps":
        """The first so many."""
        return Steps(*(getattr(self, f.name)[:count] for f in fields(self)))

    def step(self, i: int) -> Step:
        """One of them."""
        topic, giver, taker, count = (int(a[i]) for a in (self.topic, self.giver, self.taker, self.count))
        out = [(topic, giver, taker, count)]
        if self.back[i] >= 0:
            out.append((int(self.back[i]), taker, giver, int(self.back_count[i])))
        return out


def settle(seats: Seats, least: int) -> None:
    """Bring loads into their bounds, then pieces back to their owners.

    Args:
        seats: changed.
        least: claims that must move whatever is done; nothing is tried once no more do.
    """
    _roughly(seats)
    _balance(seats, _NEVER, end=seats.looked + LOOKS)
    end, again = seats.looked + (SEARCH // 3 if seats.beside().any() else SEARCH), True
    while again:
        again = False
        for find in (_returns, _other_readers):
            for step in find(seats):
                if seats.looked >= end or (seats.moved <= least and not seats.beside().any()):
                    return
                again |= _try(seats, step)


def _try(seats: Seats, step: Step) -> bool:
    """Do it where what it breaks can be mended and the plan is better then; returns whether."""
    before = seats.key()
    topic, _, taker, _ = step[0]
    for swaps in (False, True):
        seats.apply(step)
        done = [step, *_balance(seats, _MENDING, (topic, taker), swaps=swaps)]
        if seats.key() < before:
            return True
        seats.undo(done)
    return False


def _roughly(seats: Seats) -> None:
    """Bring loads near to their bounds, many hand-overs for one look, while many members are beside them."""
    end = seats.looked + LOOKS
    while np.count_nonzero(seats.beside()) > _MANY and seats.looked < end:
        together = _together(seats, _wide_gifts(seats))
        if not together:
            return
        for step in together:
            seats.apply(step)


def _wide_gifts(seats: Seats) -> Steps:
    """What many of the fullest can give to all that lack something.

    Where nobody lacks, to those with room; where nobody has too much, of those with some to spare.
    """
    room, spare = seats.band.high - seats.load, seats.load - seats.band.low
    lacking, over = np.flatnonzero(spare < 0), np.flatnonzero(room < 0)
    givers = over[np.argsort(room[over], kind="stable")] if over.size else np.argsort(-spare, kind="stable")
    return _between(seats, givers[:_WIDE], lacking if lacking.size else np.flatnonzero(room > 0))


def _between(seats: Seats, givers: I64, takers: I64) -> Steps:
    topic, who = np.nonzero(seats.pieces[:, givers])
    topics, givers = np.repeat(topic, len(takers)), np.repeat(givers[who], len(takers))
    return _whole(seats, topics, givers, np.tile(takers, len(topic)))


def _whole(seats: Seats, topics: I64, givers: I64, takers: I64) -> Steps:
    """Whole pieces, where the takers may read them."""
    fits = seats.may[topics, takers] & (givers != takers)
    topics, givers, takers = topics[fits], givers[fits], takers[fits]
    piece = seats.pieces[topics, givers]
    return Steps(topics, givers, takers, piece, np.full(len(topics), -1), np.zeros_like(piece))


def _together(seats: Seats, gifts: Steps) -> list[Step]:
    """The cheapest hand-over to each taker, but for those that are in the way of a cheaper one."""
    if not gifts.topic.size:
        return []
    steps, price = _priced(seats, gifts)
    # Of equal price, each taker looks at another piece first, or all would want the same one.
    mixed = (steps.topic * 31 + steps.giver * 17 + steps.taker * 7) % _MIXED
    order = np.lexsort((mixed, price))
    order = order[price[order] < _NEVER]
    order = order[np.sort(np.unique(steps.taker[order], return_index=True)[1])]
    over, spare = seats.load - seats.band.high, seats.load - seats.band.low
    left = np.where(over > 0, over, spare)
    topics, givers, out = set[int](), set[int](), list[Step]()
    for i in order.tolist():
        topic, giver, count = int(steps.topic[i]), int(steps.giver[i]), int(steps.count[i])
        if topic not in topics and (giver not in givers or count <= left[giver]):
            out.append(steps.step(i))
            topics.add(topic)
            givers.add(giver)
            left[giver] -= count
    return out


def _returns(seats: Seats) -> Iterator[Step]:
    """Ways in which owners get back what they miss, the largest pieces first; each fits the seats as they are then."""
    topics, owners = np.nonzero(seats.pieces < seats.owned)
    missing = seats.owned[topics, owners] - seats.pieces[topics, owners]
    for i in np.argsort(-missing, kind="stable").tolist():
        topic, owner = int(topics[i]), int(owners[i])
        for holder in np.flatnonzero(seats.pieces[topic]).tolist():
            pieces, owned = seats.pieces[topic], seats.owned[topic]
            lacks, spare = int(owned[owner] - pieces[owner]), int(pieces[holder] - owned[holder])
            seated = pieces[owner] > 0 or seats.readers[topic] < seats.caps[topic]
            if holder == owner or lacks <= 0 or pieces[holder] == 0:
                continue
            if not seated:
                yield [(topic, holder, owner, int(pieces[holder]))]
            elif spare > 0:
                yield [(topic, holder, owner, min(lacks, spare))]


def _other_readers(seats: Seats) -> Iterator[Step]:
    """Whole pieces of capped topics to somebody else."""
    topics, readers = np.nonzero(seats.pieces * (seats.caps < len(seats.load))[:, None])
    for topic, reader in zip(topics.tolist(), readers.tolist(), strict=True):
        for other in np.flatnonzero(seats.may[topic]).tolist():
            count = int(seats.pieces[topic, reader])
            if other != reader and count:
                yield [(topic, reader, other, count)]


def _balance(
    seats: Seats, steps: int, stays: tuple[int, int] = (-1, -1), *, swaps: bool = True, end: int = _NEVER
) -> list[Step]:
    """Step towards the bounds; where none leads there, make the fullest less full. Returns what was done."""
    done: list[Step] = []
    while len(done) < steps and seats.looked < end and seats.beside().any():
        step = _best_step(seats, stays, swaps=swaps)
        if step is None:
            break
        seats.apply(step)
        done.append(step)
    return done


def _best_step(seats: Seats, stays: tuple[int, int], *, swaps: bool) -> Step | None:
    full, empty = _extremes(seats)
    gifts = _gifts(seats, full, empty).without(*stays)
    best = _nearest(seats, gifts)
    if best is not None and (best[0] < 0 or not swaps):  # no claim moves for nothing
        return best[1]
    exchanges = _swaps(seats, full, empty).without(*stays) if swaps else gifts.first(0)
    found = [b for b in (best, _nearest(seats, exchanges)) if b is not None]
    if found:
        return min(found, key=lambda b: b[0])[1]
    return _lowest(seats, gifts, exchanges)


def _extremes(seats: Seats) -> tuple[I64, I64]:
    """The members that are farthest above their bounds, and those that are farthest below."""
    beside = seats.beside()
    order = np.argsort(beside, kind="stable")
    full, empty = order[::-1][:_TRIES], order[:_TRIES]
    return full[beside[full] > 0], empty[beside[empty] < 0]


def _gifts(seats: Seats, full: I64, empty: I64) -> Steps:
    """What the fullest can give to anybody, and the emptiest take from anybody."""
    given = _between(seats, full, np.arange(len(seats.load)))
    topic, giver = np.nonzero(seats.pieces) if empty.size else (given.topic[:0], given.giver[:0])
    topics, givers = np.tile(topic, len(empty)), np.tile(giver, len(empty))
    taken = _whole(seats, topics, givers, np.repeat(empty, len(topic)))
    return Steps(*(np.r_[getattr(given, f.name), getattr(taken, f.name)] for f in fields(Steps)))


def _swaps(seats: Seats, full: I64, empty: I64) -> Steps:
    """Whole pieces that the fullest can exchange with the least loaded, and the emptiest with the most loaded."""
    order = np.argsort(seats.load / seats.weights, kind="stable")
    low, high = order[:_TRIES], order[::-1][:_TRIES]
    one, two = _exchanges(seats, full[:_FEW], low), _exchanges(seats, high, empty[:_FEW])
    topic, giver, back, taker = (np.r_[a, b] for a, b in zip(one, two, strict=True))
    return Steps(topic, giver, taker, seats.pieces[topic, giver], back, seats.pieces[back, taker])


def _exchanges(seats: Seats, givers: I64, takers: I64) -> tuple[I64, I64, I64, I64]:
    """Each piece of these with each piece of those, where both may read what they get: topic, giver, topic, taker."""
    mine, giver = np.nonzero(seats.pieces[:, givers])
    theirs, taker = np.nonzero(seats.pieces[:, takers])
    one, two = np.repeat(np.arange(len(mine)), len(theirs)), np.tile(np.arange(len(theirs)), len(mine))
    topic, back, giver, taker = mine[one], theirs[two], givers[giver[one]], takers[taker[two]]
    fits = (topic != back) & (giver != taker) & seats.may[topic, taker] & seats.may[back, giver]
    return topic[fits], giver[fits], back[fits], taker[fits]


def _nearest(seats: Seats, steps: Steps) -> tuple[int, Step] | None:
    """Find what brings loads nearest to their bounds for the fewest claims, with its price in claims moved for nothing.

    A claim that goes from one above to one below its bounds brings both nearer: it moves for something.
    """
    if not steps.topic.size:
        return None
    steps, price = _priced(seats, steps)
    best = int(np.lexsort((seats.load[steps.taker], price))[0])
    return None if price[best] == _NEVER else (int(price[best]), steps.step(best))


def _priced(seats: Seats, steps: Steps) -> tuple[Steps, I64]:
    """As much of each hand-over as is wanted, and its price; _NEVER where it brings loads no nearer."""
    seats.looked += _LOOK + steps.topic.size
    load, low, high = seats.load, seats.band.low, seats.band.high
    giver, taker = steps.giver, steps.taker
    over, under = np.maximum(load - high, 0)[giver], np.maximum(low - load, 0)[taker]
    spare, room = np.maximum(load - low, 0)[giver], np.maximum(high - load, 0)[taker]
    both = np.where(under > 0, np.minimum(over, under), np.minimum(over, room))
    wanted = np.where(over > 0, both, np.minimum(under, spare))
    steps = _part(seats, steps, wanted)
    net = steps.count - steps.back_count
    beside = np.abs(seats.beside())
    after = _beside(load[giver] - net, low[giver], high[giver]) + _beside(load[taker] + net, low[taker], high[taker])
    nearer = beside[giver] + beside[taker] - after
    price = (2 * _lost(seats, steps) - nearer) * _NEARER - nearer
    return steps, np.where(nearer > 0, price, _NEVER)


def _lowest(seats: Seats, gifts: Steps, swaps: Steps) -> Step | None:
    """Find what makes the higher of two members lowest, where the bounds cannot be reached."""
    best: tuple[float, float, Step] | None = None
    for found in (gifts, swaps):
        if not found.topic.size:
            continue
        load, weights = seats.load, seats.weights
        giver, taker = found.giver, found.taker
        level = (load[giver] + load[taker]) / (weights[giver] + weights[taker])
        steps = _part(seats, found, np.maximum(np.floor(load[giver] - level * weights[giver]), 1).astype(np.int64))
        net = steps.count - steps.back_count
        after = np.maximum((load[giver] - net) / weights[giver], (load[taker] + net) / weights[taker])
        gain = np.maximum(load[giver] / weights[giver], load[taker] / weights[taker]) - after
        price = _lost(seats, steps)
        i = int(np.lexsort((price, -np.round(gain, 9)))[0])
        if gain[i] > _LEAST and (best is None or (-gain[i], price[i]) < best[:2]):
            best = (-float(gain[i]), float(price[i]), steps.step(i))
    return None if best is None else best[2]


def _part(seats: Seats, steps: Steps, wanted: I64) -> Steps:
    """Where the taker reads the topic, or a seat is free, give as many as wanted; otherwise the whole piece."""
    seated = seats.pieces[steps.topic, steps.taker] > 0
    seated |= seats.readers[steps.topic] < seats.caps[steps.topic]
    count = np.where(seated & (steps.back < 0), np.minimum(np.maximum(wanted, 1), steps.count), steps.count)
    return replace(steps, count=count)


def _lost(seats: Seats, steps: Steps) -> I64:
    """How many claims more each step moves."""
    out = _missing(seats, steps.topic, steps.giver, -steps.count) + _missing(
        seats, steps.topic, steps.taker, steps.count
    )
    back = _missing(seats, steps.back, steps.taker, -steps.back_count) + _missing(
        seats, steps.back, steps.giver, steps.back_count
    )
    return out + np.where(steps.back >= 0, back, 0)


def _missing(seats: Seats, topic: I64, member: I64, more: I64) -> I64:
    missing = seats.owned[topic, member] - seats.pieces[topic, member]
    out: I64 = np.maximum(missing - more, 0) - np.maximum(missing, 0)
    return out


def _beside(load: I64, low: I64, high: I64) -> I64:
    out: I64 = np.maximum(load - high, 0) + np.maximum(low - load, 0)
    return out
