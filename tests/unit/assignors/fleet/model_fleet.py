"""A fleet of real agent loops on a membership of values: a test decides when each agent hears of what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

from assignors.fleet import (
    Agent,
    AgentParts,
    Balance,
    ClusterWatch,
    FleetAgent,
    FleetTopic,
    FleetWorkers,
    Lane,
    Lanes,
    Membership,
    Source,
    Standing,
    View,
    declared_settings,
)
from assignors.fleet.topic_descriptions import Sighting

Partition = tuple[str, int]


@dataclass
class Server:
    """Computes the views, as a membership's server does."""

    view: View = field(default_factory=View)

    def put(self, agent: Agent) -> None:
        """An agent joins, or declares other settings."""
        others = [one for one in self.view.members if one.id != agent.id]
        if agent not in self.view.members:
            self.view = self.view.following([*others, agent], self.view.version + 1)

    def remove(self, agent: str) -> None:
        """An agent has left, or its session has ended."""
        self.view = self.view.without(agent)


class ModelMembers:
    """The membership of one agent, which hears of a new view only when a test lets it."""

    def __init__(self, agent: Agent, server: Server) -> None:
        self.agent = agent
        self.server = server
        self.joined = False
        self._state = Membership()

    def start(self) -> Self:
        """Join."""
        self.joined = True
        self.server.put(self.agent)
        self.hear()
        return self

    def declare(self, settings: tuple[str, ...]) -> None:
        """Send the settings; this agent hears of the new view later, as all others."""
        self.agent = replace(self.agent, settings=settings)
        if self.joined:
            self.server.put(self.agent)

    def hear(self) -> None:
        """Take the newest view."""
        if self.joined:
            self._state = Membership(view=self.server.view, standing=Standing.MEMBER)

    def away(self) -> None:
        """The server does not answer."""
        self._state = replace(self._state, standing=Standing.UNREACHABLE, reason="the server does not answer")

    def state(self) -> Membership:
        """What it knows."""
        return self._state

    def wait(self, seen: Membership, timeout_s: float) -> Membership:  # noqa: ARG002 -- the contract's
        """No test waits."""
        return self._state

    def observe(self) -> Membership:
        """What it knows."""
        return self._state

    def close(self) -> None:
        """Leave."""
        if self.joined:
            self.server.remove(self.agent.id)


@dataclass
class ModelWatch:
    """A cluster whose answer a test sets."""

    sighting: Sighting = field(default_factory=Sighting)
    name: str = "s"

    @property
    def source(self) -> Source:
        """The source, of which only the name counts."""
        return Source(name=self.name, kafka={"bootstrap.servers": "none"}, pattern=".*")

    def seen(self) -> Sighting:
        """The answer."""
        return self.sighting

    def start(self) -> None:
        """Nothing to begin."""

    def close(self) -> None:
        """Nothing to end."""


@dataclass
class ModelIngestion:
    """Keeps the lanes that it was given."""

    lanes: Mapping[Lane, frozenset[FleetTopic]] = field(default_factory=dict)

    def assign(self, lanes: Mapping[Lane, frozenset[FleetTopic]]) -> None:
        """Keep."""
        self.lanes = lanes

    def problems(self) -> Sequence[str]:
        """None."""
        return ()

    def figures(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def close(self) -> None:
        """Nothing to end."""


class ModelAgent:
    """One agent with its own workers, which a test changes."""

    def __init__(  # noqa: PLR0913 -- what a test may set
        self,
        name: str,
        server: Server,
        *seen: Sighting,
        workers: FleetWorkers | None = None,
        growth_s: float = 0.0,
        zone: str | None = None,
        balance: Balance | None = None,
    ) -> None:
        self.name = name
        self.workers = workers or FleetWorkers()
        identity = Agent(name, zone=zone, settings=declared_settings({"assignment": 1, "lanes": 2, "seed": 0}))
        self.members = ModelMembers(identity, server)
        # The sources are "s", "s1", "s2" and so on.
        self.watches = [ModelWatch(one, f"s{number or ''}") for number, one in enumerate(seen)]
        self.watch = self.watches[0]
        self.ingestion = ModelIngestion()
        self.loop = FleetAgent(
            AgentParts(
                agent=identity,
                members=self.members,
                watches=cast("list[ClusterWatch]", self.watches),
                ingestion=self.ingestion,
                workers=lambda _: self.workers,
                lanes=Lanes(count=2, seated=True),
                growth_s=growth_s,
                prefer_zones=zone is not None,
                balance=balance or Balance(),
            )
        )

    def step(self, *, hears: bool = True) -> None:
        """One turn of the loop."""
        if hears:
            self.members.hear()
        self.loop.step()


def readers(agents: Sequence[ModelAgent], topics: Sequence[FleetTopic]) -> dict[Partition, list[str]]:
    """The agents that read each partition; in a lane's group its first member by name gets all of a topic."""
    found: dict[Partition, list[str]] = {(topic.name, n): [] for topic in topics for n in range(topic.partitions)}
    groups: dict[tuple[int, str], list[str]] = {}
    for agent in agents:
        for lane, mine in agent.ingestion.lanes.items():
            for topic in mine:
                if lane.seated:
                    for number in topic.share or ():
                        found[topic.name, number].append(agent.name)
                else:
                    groups.setdefault((lane.number, topic.name), []).append(agent.name)
    sizes = {topic.name: topic.partitions for topic in topics}
    for (_, name), members in groups.items():
        for number in range(sizes[name]):
            found[name, number].append(min(members))
    return found
