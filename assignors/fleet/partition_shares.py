"""Which partitions of a topic each of its seated agents reads: even shares by rendezvous. Pure.

Agents take their seats one after another. Each takes, from the agents that hold most, the partitions that rank it
highest, until it holds its even share. So one more seat moves only the partitions of that seat. If an agent departs,
its stand-in takes exactly its partitions; without a stand-in the others divide them, and keep what they have.
"""

from collections.abc import Iterable, Sequence

from assignors.hashing.hash import hash64, pair64

Shares = dict[str, list[int]]
"""Partitions by agent."""


def partition_shares(identity: str, partitions: int, planned: Sequence[str], seated: Sequence[str]) -> Shares:
    """Divide the partitions of a topic among its agents.

    Args:
        identity: of the topic.
        partitions: number of partitions.
        planned: agents on the topic's seats before departures, in order of their seats.
        seated: agents on the seats now, in order; each may be planned, or a stand-in of a departed agent.

    Returns:
        Partitions by seated agent, sorted; each partition once, and the shares differ by at most one partition.
    """
    ranks = [hash64(f"{identity}/{number}") for number in range(partitions)]
    if not seated:
        return {}
    shares = _planned_shares(ranks, planned)
    vacant = [agent for agent in planned if agent not in seated]
    newcomers = [agent for agent in seated if agent not in shares]
    takes = {agent: agent for agent in seated if agent in shares} | dict(zip(newcomers, vacant, strict=False))
    found = {agent: shares[takes[agent]] if agent in takes else [] for agent in seated}
    held = {number for mine in found.values() for number in mine}
    for number in range(partitions):
        if number not in held:
            min(found.values(), key=len).append(number)
    _level(ranks, found)
    return {agent: sorted(mine) for agent, mine in found.items()}


def _planned_shares(ranks: Sequence[int], planned: Sequence[str]) -> Shares:
    found: Shares = {}
    for agent in planned:
        if not found:
            found[agent] = list(range(len(ranks)))
            continue
        found[agent] = []
        for _ in range(len(ranks) // len(found)):
            _take(ranks, found, agent)
    return found


def _level(ranks: Sequence[int], found: Shares) -> None:
    """Move partitions from the largest to the smallest share until all shares are even."""
    while max(map(len, found.values())) - min(map(len, found.values())) > 1:
        _take(ranks, found, min(found, key=lambda agent: len(found[agent])))


def _take(ranks: Sequence[int], found: Shares, agent: str) -> None:
    """Move one partition to an agent: of those that the fullest agents hold, the one that ranks this agent highest."""
    node, most = hash64(agent), max(map(len, found.values()))
    fullest = (mine for other, mine in found.items() if other != agent and len(mine) == most)
    _, number, giver = max(_pairs(ranks, node, fullest), key=lambda one: one[:2])
    giver.remove(number)
    found[agent].append(number)


def _pairs(ranks: Sequence[int], node: int, shares: Iterable[list[int]]) -> Iterable[tuple[int, int, list[int]]]:
    return ((pair64(node, ranks[number]), number, mine) for mine in shares for number in mine)
