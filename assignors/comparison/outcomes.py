"""Compares the plans of several strategies for a group; changes nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assignors.comparison.stock_assignors import STOCK, stock_plan
from assignors.planner.assign_partitions import plan
from assignors.planner.rack_locality import RackBy
from assignors.planner.topics_and_members import Member, Topic, TopicPartition
from assignors.planner.worker_caps import Workers

Owners = Mapping[TopicPartition, str]
STRATEGIES: Final = (*STOCK, "hrw", "shuffled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the strategies `hrw` and `shuffled`.

    Attributes:
        workers: maximum number of different members that may read a topic, for `hrw`.
        epsilon: allowed distance from the fair share, for `hrw`.
        seed: of both.
        rack_by: a partition is local where a replica is, or only where its leader is; for `hrw`.
    """

    workers: Workers = None
    epsilon: float = 0.05
    seed: int = 0
    rack_by: RackBy = "replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The plan of a strategy for a group, in figures.

    Attributes:
        strategy: its name; `now` is the group's current assignment.
        most: partitions of the fullest member.
        mean: partitions of a member, on average.
        idle: members without a partition.
        connections: pairs of a member and a topic that it reads.
        off_rack: partitions read from another rack, where both racks are known.
        off_rack_bytes: their size on disk; None if sizes are unknown.
        moved: partitions whose owner changes if the group adopts the strategy now.
        moved_on_leave: partitions whose owner changes when the fullest member leaves afterwards, its own among them.
        leaves: how many of these belonged to the leaving member; every strategy must move at least these.
        failure: why there is no plan; all numbers are then 0.
    """

    strategy: str
    most: int = 0
    mean: float = 0.0
    idle: int = 0
    connections: int = 0
    off_rack: int = 0
    off_rack_bytes: int | None = None
    moved: int = 0
    moved_on_leave: int | None = None
    leaves: int = 0
    failure: str = ""

    @property
    def skew(self) -> float:
        """Load of the fullest member divided by the mean; 1.0 is even."""
        return self.most / self.mean if self.mean else 0.0


def compare(  # noqa: PLR0913 - each is named at the call
    topics: Sequence[Topic],
    members: Sequence[Member],
    *,
    strategies: Sequence[str] = STRATEGIES,
    settings: Settings | None = None,
    sizes: Mapping[TopicPartition, int] | None = None,
    leaving: str | None = None,
    started: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Measure the group's current assignment and the plan of each strategy.

    Args:
        topics: the topics that the group could read.
        members: of the group, with what they own.
        strategies: names from `STRATEGIES`.
        settings: for `hrw` and `shuffled`.
        sizes: stored bytes of each partition.
        leaving: the member that leaves in the second step; by default the fullest one of each plan.
        started: called with the name of each strategy before it plans; the stock sticky one may take minutes.

    Returns:
        `now` first, then the strategies in the given order. A strategy that raises has a `failure`.
    """
    settings = settings or Settings()
    now = {pair: member.id for member in members for pair in member.owned}
    measurement = _Measurement(topics, members, now, sizes)
    outcomes = [measurement.outcome("now", now, None, leaving)]
    for strategy in strategies:
        started(strategy)
        try:
            owners = _owners(strategy, topics, members, settings)
            fullest = leaving or _fullest(owners, members)
            rest = [replace(one, owned=_owned(owners, one.id)) for one in members if one.id != fullest]
            after = _owners(strategy, topics, rest, settings) if rest else None
        except Exception as error:  # noqa: BLE001 - the failure of another assignor is a result
            outcomes.append(Outcome(strategy=strategy, failure=f"{type(error).__name__}: {error}"))
        else:
            outcomes.append(measurement.outcome(strategy, owners, after, fullest))
    return outcomes


@dataclass(frozen=True, slots=True)
class _Measurement:
    topics: Sequence[Topic]
    members: Sequence[Member]
    now: Owners
    sizes: Mapping[TopicPartition, int] | None

    def outcome(self, strategy: str, owners: Owners, after: Owners | None, leaver: str | None) -> Outcome:
        loads = dict.fromkeys((member.id for member in self.members), 0)
        for member in owners.values():
            loads[member] += 1
        away = self._off_rack(owners)
        return Outcome(
            strategy=strategy,
            most=max(loads.values(), default=0),
            mean=len(owners) / max(1, len(loads)),
            idle=sum(not load for load in loads.values()),
            connections=len({(member, topic) for (topic, _), member in owners.items()}),
            off_rack=len(away),
            off_rack_bytes=None if self.sizes is None else sum(self.sizes.get(pair, 0) for pair in away),
            moved=sum(self.now.get(pair, member) != member for pair, member in owners.items()),
            moved_on_leave=None if after is None else sum(after.get(pair) != owners[pair] for pair in owners),
            leaves=sum(member == leaver for member in owners.values()),
        )

    def _off_rack(self, owners: Owners) -> list[TopicPartition]:
        racks = {member.id: member.rack for member in self.members}
        replicas = {topic.name: topic.racks for topic in self.topics}
        away = []
        for (topic, number), member in owners.items():
            found = replicas.get(topic)
            near = found[number] if found is not None and number < len(found) else frozenset()
            if near and racks[member] and racks[member] not in near:
                away.append((topic, number))
        return away


def _owners(
    strategy: str, topics: Sequence[Topic], members: Sequence[Member], settings: Settings
) -> dict[TopicPartition, str]:
    if strategy in STOCK:
        given: Mapping[str, Sequence[TopicPartition] | frozenset[TopicPartition]] = stock_plan(
            strategy, topics, members
        )
    elif strategy == "hrw":
        given = plan(
            topics,
            members,
            workers=settings.workers,
            epsilon=settings.epsilon,
            seed=settings.seed,
            rack_by=settings.rack_by,
        ).partitions
    else:
        given = plan(topics, members, strategy="shuffled", epsilon=0, seed=settings.seed).partitions
    return {pair: member for member, pairs in given.items() for pair in pairs}


def _fullest(owners: Owners, members: Sequence[Member]) -> str:
    loads = dict.fromkeys(sorted(member.id for member in members), 0)
    for member in owners.values():
        loads[member] += 1
    return max(loads, key=lambda member: loads[member])


def _owned(owners: Owners, member: str) -> frozenset[TopicPartition]:
    return frozenset(pair for pair, owner in owners.items() if owner == member)
