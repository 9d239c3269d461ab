"""Hand-overs between the readers of capped topics: into the bounds of the loads.

A piece is what one reader has of a topic. A part of it can go to another reader of the topic, or to a newcomer where a
seat is free; otherwise a newcomer takes the whole piece. Each step takes the hand-over, or the exchange of two pieces,
that brings the loads nearest for the fewest claims that move. `neighbourhood_search` does what single steps do not
reach: loads within their bounds, and then fewer moves. Where no loads within the bounds are found, each piece is tried
elsewhere, and what that breaks is mended: kept where the loads are more even in the end (iterated local search).
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from assignors.planner.capped import candidate_moves
from assignors.planner.capped.candidate_moves import Steps, part
from assignors.planner.capped.neighbourhood_search import divide_anew
from assignors.planner.capped.search_state import Seats, Step
from assignors.planner.input_arrays import I64

_NEARER: Final = 1 << 20
_NEVER: Final = 1 << 62
_ENDLESS: Final = 1 << 62
_LEAST: Final = 1e-9
_MENDING: Final = 8  # steps to mend what giving a piece back broke
_MANY: Final = 8  # members beside their bounds: for more, one look finds many hand-overs
_HOPEFUL: Final = 64  # members beside their bounds: more are not mended by dividing the pieces of a few
_LOOK: Final = 2_000  # hand-overs that could be priced in the time that a look takes anyway
_MIXED: Final = 1009
LOOKS: Final = 4_000_000
"""Most hand-overs that are looked at to bring loads near to their bounds, and as many again to bring them there: a
bound on the work of a leader whose heartbeats wait, about a second each."""
SEARCH: Final = 2_000_000
"""The same to find fewer moves. Two thirds where loads are beside their bounds, which often cannot be mended."""


def settle(seats: Seats, least: int) -> None:
    """Bring loads into their bounds, then pieces back to their owners.

    Args:
        seats: changed.
        least: claims that must move whatever is done; nothing is tried once no more do.
    """
    _roughly(seats)
    _balance(seats, _ENDLESS, end=seats.looked + LOOKS)
    if seats.beside().any():
        _come_inside(seats, least)
    if not seats.beside().any():
        divide_anew(seats, least, seats.looked + SEARCH)


def _come_inside(seats: Seats, least: int) -> None:
    """Search for loads within the bounds, which may not exist: otherwise for less uneven ones."""
    if np.count_nonzero(seats.beside()) <= _HOPEFUL:
        before, pieces = seats.key(), seats.pieces.copy()
        divide_anew(seats, least, seats.looked + SEARCH // 3)
        if seats.key() > before:
            seats.reset(pieces)
    end, again = seats.looked + SEARCH // 3, True
    while again:
        again = False
        for find in (_returns, _other_readers):
            for step in find(seats):
                if seats.looked >= end or not seats.beside().any():
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
        together = _together(seats, candidate_moves.wide_gifts(seats))
        if not together:
            return
        for step in together:
            seats.apply(step)


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
    seats: Seats, steps: int, stays: tuple[int, int] = (-1, -1), *, swaps: bool = True, end: int = _ENDLESS
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
    full, empty = candidate_moves.extremes(seats)
    gifts = candidate_moves.gifts(seats, full, empty).without(*stays)
    best = _nearest(seats, gifts)
    if best is not None and (best[0] < 0 or not swaps):  # no claim moves for nothing
        return best[1]
    exchanges = candidate_moves.swaps(seats, full, empty).without(*stays) if swaps else gifts.first(0)
    found = [b for b in (best, _nearest(seats, exchanges)) if b is not None]
    if found:
        return min(found, key=lambda b: b[0])[1]
    return _lowest(seats, gifts, exchanges)


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
    steps = part(seats, steps, wanted)
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
        steps = part(seats, found, np.maximum(np.floor(load[giver] - level * weights[giver]), 1).astype(np.int64))
        net = steps.count - steps.back_count
        after = np.maximum((load[giver] - net) / weights[giver], (load[taker] + net) / weights[taker])
        gain = np.maximum(load[giver] / weights[giver], load[taker] / weights[taker]) - after
        price = _lost(seats, steps)
        i = int(np.lexsort((price, -np.round(gain, 9)))[0])
        if gain[i] > _LEAST and (best is None or (-gain[i], price[i]) < best[:2]):
            best = (-float(gain[i]), float(price[i]), steps.step(i))
    return None if best is None else best[2]


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
