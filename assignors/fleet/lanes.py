"""Few consumers for many topics: the topics of a cluster are spread over a fixed number of lanes, one group each.

The lane of a topic depends on the topic alone, never on who reads it. So agents that believe in different fleets still
meet in one consumer group, and its protocol gives each partition to one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from assignors.errors import FleetError
from assignors.fleet.agents_view import View
from assignors.fleet.fleet_topic import FleetTopic
from assignors.fleet.shared_settings import declared_number
from assignors.hashing.hash import hash64

_LANE: Final = ".lane-"
_MOST: Final = 64  # each has threads and connections of its own

LANES: Final = "lanes"
"""The name under which agents declare their number."""


@dataclass(frozen=True, slots=True, order=True)
class Lane:
    """One consumer of an agent: one lane of one cluster.

    Attributes:
        source: what the configuration calls the cluster.
        number: from 0.
    """

    source: str
    number: int

    def group(self, fleet: str) -> str:
        """The consumer group of a fleet's lane."""
        return f"{fleet}{_LANE}{self.number}"


def lane_groups(fleet: str, groups: Iterable[str]) -> list[str]:
    """Those of some consumer groups that are lanes of a fleet, in order."""
    head = f"{fleet}{_LANE}"
    return sorted(one for one in groups if one.startswith(head) and one.removeprefix(head).isdecimal())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """How topics are grouped.

    Attributes:
        count: lanes of a cluster, so an agent has at most this many consumers a cluster; the same in the whole fleet.

    Raises:
        FleetError: below 1, or above 64.
    """

    count: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            raise FleetError(f"lanes={self.count}, need 1 to {_MOST} consumers for each cluster")

    def agreed(self, view: View) -> "Lanes":
        """The lanes that all agents of a view use: the fewest that any of them declares, or these where none does.

        A function of the view, so that a rolling restart with another number is one change of all agents at once. If
        each agent used its own, the agents of a topic would be in different groups, and each would read all of it.
        """
        declared = [declared_number(agent, LANES) for agent in view.members]
        return Lanes(count=min((one for one in declared if one and one <= _MOST), default=self.count))

    def lane(self, topic: FleetTopic) -> Lane:
        """The lane of a topic."""
        return Lane(topic.source, hash64(topic.identity) % self.count)

    def group(self, topics: Iterable[FleetTopic]) -> Mapping[Lane, frozenset[FleetTopic]]:
        """An agent's topics by lane."""
        found: dict[Lane, set[FleetTopic]] = {}
        for topic in topics:
            found.setdefault(self.lane(topic), set()).add(topic)
        return {lane: frozenset(mine) for lane, mine in sorted(found.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChange:
    """From what an agent reads to what it should read.

    Attributes:
        start: lanes without a consumer yet, with their topics.
        change: lanes whose topics change.
        stop: lanes without a topic left.
    """

    start: Mapping[Lane, frozenset[FleetTopic]] = field(default_factory=dict)
    change: Mapping[Lane, frozenset[FleetTopic]] = field(default_factory=dict)
    stop: frozenset[Lane] = frozenset()


def lane_change(
    before: Mapping[Lane, frozenset[FleetTopic]], after: Mapping[Lane, frozenset[FleetTopic]]
) -> LaneChange:
    """Compare; lanes that stay the same are in none of the three."""
    return LaneChange(
        start={lane: topics for lane, topics in after.items() if lane not in before},
        change={lane: topics for lane, topics in after.items() if lane in before and before[lane] != topics},
        stop=frozenset(before) - frozenset(after),
    )
