"""Few consumers for many topics: the topics of a cluster are divided among a fixed number of lanes, one group each.

The lane of a topic depends only on the topic, never on its readers. So agents with different views still use the same
consumer group: its protocol assigns each partition to one of them, or, if seats decide, it keeps their offsets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from assignors.errors import FleetError
from assignors.fleet.agents_view import View
from assignors.fleet.agreed_workers import numbers_agree
from assignors.fleet.drifted_settings import WORKERS, declared_number, settings_drift
from assignors.fleet.fleet_topic import FleetTopic
from assignors.hashing.murmur3_hash import hash64

_LANE: Final = ".lane-"
_MOST: Final = 64  # each lane has its own threads and connections

LANES: Final = "lanes"
"""The name under which agents declare their number of lanes."""
ASSIGNMENT: Final = "assignment"
"""The name under which agents declare 1 if seats decide which partitions they read, and 0 if the group does."""


@dataclass(frozen=True, slots=True, order=True)
class Lane:
    """One consumer of an agent: one lane of one cluster.

    Attributes:
        source: the cluster's name in the configuration.
        number: from 0.
        seated: whether each agent reads its shares of the topics, without joining the group.
    """

    source: str
    number: int
    seated: bool = False

    def group(self, fleet: str) -> str:
        """Return the consumer group of a fleet's lane."""
        return f"{fleet}{_LANE}{self.number}"


def computes_alike(view: View) -> bool:
    """Return whether all agents of a view compute the same placement.

    They do if their settings are equal and they have workers per topic in common. Lanes and assignment may differ,
    because each agent takes them from the view.
    """
    if settings_drift(view.members, but=(LANES, ASSIGNMENT, WORKERS)):
        return False
    return numbers_agree(view)


def lane_groups(fleet: str, groups: Iterable[str]) -> list[str]:
    """Return the consumer groups that are lanes of a fleet, in order."""
    head = f"{fleet}{_LANE}"
    return sorted(one for one in groups if one.startswith(head) and one.removeprefix(head).isdecimal())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The grouping of topics into lanes.

    Attributes:
        count: lanes per cluster, which is the maximum number of consumers of an agent per cluster; the same in the
            whole fleet.
        seated: whether seats, instead of the consumer group, decide which partitions of a topic an agent reads.
        siblings: number of sources on the cluster of a source, by source, if there are several; they divide its lanes,
            and each has at least one.
        silent: whether the agents can have different workers per topic without telling each other.

    Raises:
        FleetError: below 1, or above 64.
    """

    count: int = 4
    seated: bool = False
    siblings: Mapping[str, int] = field(default_factory=dict)
    silent: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            raise FleetError(f"lanes={self.count}, need 1 to {_MOST} consumers for each cluster")

    def agreed(self, view: View) -> "Lanes":
        """Return the lanes that all agents of a view use.

        These are the fewest that any of them declares, and seats decide if all of them declare it and compute the same
        placement; or these lanes if none declares anything. The result depends only on the view, so a rolling restart
        with other settings is one change for all agents. If each agent used its own number, the agents of a topic
        would be in different groups, and each would read all of it. If seats decided while agents compute different
        seats of a topic, some of its partitions could have no reader; the group always assigns all of them.
        """
        declared = [declared_number(agent, LANES) for agent in view.members]
        seated = self.seated
        if any(agent.settings for agent in view.members):
            seated = computes_alike(view) and all(declared_number(agent, ASSIGNMENT) == 1 for agent in view.members)
        count = min((one for one in declared if one and one <= _MOST), default=self.count)
        return replace(self, count=count, seated=seated)

    def lane(self, topic: FleetTopic) -> Lane:
        """Return the lane of a topic."""
        return Lane(topic.source, hash64(topic.identity) % self._count(topic.source), self.seated)

    def of(self, source: str) -> list[Lane]:
        """Return all lanes of a source."""
        return [Lane(source, number, self.seated) for number in range(self._count(source))]

    def _count(self, source: str) -> int:
        return max(1, self.count // self.siblings.get(source, 1))

    def group(self, topics: Iterable[FleetTopic]) -> Mapping[Lane, frozenset[FleetTopic]]:
        """Group an agent's topics by lane."""
        found: dict[Lane, set[FleetTopic]] = {}
        for topic in topics:
            found.setdefault(self.lane(topic), set()).add(topic)
        return {lane: frozenset(mine) for lane, mine in sorted(found.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneChange:
    """The changes from an agent's current lanes to the intended ones.

    Attributes:
        start: lanes that need a new consumer, with their topics.
        change: lanes whose topics change.
        stop: lanes without topics.
    """

    start: Mapping[Lane, frozenset[FleetTopic]] = field(default_factory=dict)
    change: Mapping[Lane, frozenset[FleetTopic]] = field(default_factory=dict)
    stop: frozenset[Lane] = frozenset()


def lane_change(
    before: Mapping[Lane, frozenset[FleetTopic]], after: Mapping[Lane, frozenset[FleetTopic]]
) -> LaneChange:
    """Compare current and intended lanes; unchanged lanes are left out."""
    return LaneChange(
        start={lane: topics for lane, topics in after.items() if lane not in before},
        change={lane: topics for lane, topics in after.items() if lane in before and before[lane] != topics},
        stop=frozenset(before) - frozenset(after),
    )
