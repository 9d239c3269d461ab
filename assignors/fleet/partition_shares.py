"""Which partitions of a topic each of its seated agents reads: even shares, by the order of the seats. Pure.

Agents take their seats one after another, and each takes its even share from the others. So one more seat moves only
the partitions of that seat: of P partitions and k seats before, the new one takes at most ceil(P / (k + 1)). If an
agent departs, its stand-in takes exactly its partitions; without a stand-in the others divide them, and keep what they
have.

With up to six seats the seat of a partition does not depend on the number of partitions, so partitions that are added
to a topic move no other. Such a sequence is even after each of its elements, so the new seat sometimes takes one
partition more than the smallest share: the third of 16 partitions takes 6. A search found sequences for up to seven
seats. Each further seat takes the partitions that rank it highest, so added partitions move some others: up to
seats x sqrt(partitions) / 2 in tests, which may be most of a topic with few partitions for each seat. The time grows
with partitions x log(partitions) for each seat beyond the sixth: 50 ms for 10,000 partitions and 50 seats.
"""

import heapq
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Shares = dict[str, list[int]]
"""Partitions by agent."""

SEATED: Final = (
    "000000000000000000000000000000000000000000000000000000000000",
    "010101011001010101011001010101010101010101010101011001010101",
    "012102012021012201021021012102012102012102210102021021012102",
    "012302313021013201321023012302312103012303210132021321032103",
    "012342314021043201341023412304312403012443210134021324032104",
    "012345314025043251341025412305312405012453210534021354032154",
)
"""The seat of each partition, for one to six seats; it repeats after 60 partitions."""

PRESENT_DIVISION: Final = 3
"""The number of this division among the settings that agents declare. It rises when equal arguments give other seats or
shares: agents that divide a topic in two ways would leave partitions without a reader."""

_GOLDEN: Final = 0x9E3779B97F4A7C15  # the constants of splitmix64
_MIX: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def partition_shares(partitions: int, planned: Sequence[str], seated: Sequence[str]) -> Shares:
    """Divide the partitions of a topic among its agents.

    Args:
        partitions: number of partitions.
        planned: agents on the topic's seats before departures, in order of their seats.
        seated: agents on the seats now, in order; each may be planned, or a stand-in of a departed agent.

    Returns:
        Partitions by seated agent, sorted; each partition once, and the shares differ by at most one partition.
    """
    if not seated:
        return {}
    shares = _planned_shares(partitions, planned)
    vacant = [agent for agent in planned if agent not in seated]
    newcomers = [agent for agent in seated if agent not in shares]
    takes = {agent: agent for agent in seated if agent in shares} | dict(zip(newcomers, vacant, strict=False))
    found = {agent: shares[takes[agent]] if agent in takes else [] for agent in seated}
    taken = set(takes.values())
    _divide(sorted(number for agent, mine in shares.items() if agent not in taken for number in mine), found)
    _level(found)
    return {agent: sorted(mine) for agent, mine in found.items()}


def _planned_shares(partitions: int, planned: Sequence[str]) -> Shares:
    if not planned:
        return {"": list(range(partitions))}
    seats = _seats(partitions, len(planned))
    found: Shares = {agent: [] for agent in planned}
    for number, seat in enumerate(seats):
        found[planned[seat]].append(number)
    return found


def _seats(partitions: int, seats: int) -> list[int]:
    """Return the seat of each partition."""
    known = list(map(int, SEATED[min(seats, len(SEATED)) - 1]))
    repeated = (known * (partitions // len(known) + 1))[:partitions]
    if seats <= len(SEATED):
        return repeated
    owners = np.array(repeated, dtype=np.int64)
    numbers = np.arange(partitions, dtype=np.uint64) * np.uint64(_GOLDEN)
    for seat in range(len(SEATED), seats):
        _take_seat(owners, numbers, seat)
    return [int(one) for one in owners]


def _take_seat(owners: npt.NDArray[np.int64], numbers: npt.NDArray[np.uint64], seat: int) -> None:
    """Give one more seat its even share: from each other seat the partitions that rank it highest."""
    sizes = np.bincount(owners, minlength=seat)
    least, above = divmod(len(owners), seat + 1)
    kept = np.full(seat, least)
    kept[np.flatnonzero(sizes > least)[:above]] += 1
    ranks = (numbers ^ np.uint64(seat * _GOLDEN % 2**64)) * np.uint64(_MIX[0])
    ranks = (ranks ^ (ranks >> np.uint64(31))) * np.uint64(_MIX[1])
    order = np.lexsort((ranks ^ (ranks >> np.uint64(29)), owners))
    place = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owners[order[place < np.repeat(sizes - kept, sizes)]] = seat


def _divide(numbers: Sequence[int], found: Shares) -> None:
    """Give these partitions to the agents that have fewest, the first seats first."""
    smallest = [(len(mine), seat, mine) for seat, mine in enumerate(found.values())]
    heapq.heapify(smallest)
    for number in numbers:
        size, seat, mine = smallest[0]
        mine.append(number)
        heapq.heapreplace(smallest, (size + 1, seat, mine))


def _level(found: Shares) -> None:
    """Move the last partitions of the largest shares to the smallest ones, no more than needed."""
    least, above = divmod(sum(map(len, found.values())), len(found))
    surplus: list[int] = []
    for rank, mine in enumerate(sorted(found.values(), key=len, reverse=True)):
        kept = least + (rank < above)
        surplus += mine[kept:]
        del mine[kept:]
    _divide(sorted(surplus), found)
