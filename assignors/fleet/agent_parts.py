"""What an agent's loop needs: its identity, its membership, its clusters, and the ingestion that reads its topics."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.agents_view import Agent
from assignors.fleet.cluster_topics import ClusterWatch
from assignors.fleet.fleet_topic import FleetTopic
from assignors.fleet.lanes import Lane, Lanes
from assignors.fleet.membership_contract import Members
from assignors.fleet.topic_placement import Balance


class Ingestion(Protocol):
    """Reads the topics of an agent.

    Contract:
    * `assign` sets all topics to read from now on, and returns immediately: consumers start, change and stop in the
      background, without effect on unchanged lanes. In a lane that is `seated`, exactly the partitions in `share` of
      each topic are read; in any other lane its group protocol decides which of its agents reads a partition.
    * `problems` reports a topic or cluster that fails; it affects no other.
    * `close` finishes the records that were read, then ends; it may block for some seconds.
    """

    def assign(self, lanes: Mapping[Lane, frozenset[FleetTopic]]) -> None:
        """Read these topics from now on."""
        ...

    def problems(self) -> Sequence[str]:
        """Return the current problems, one sentence each."""
        ...

    def figures(self) -> Mapping[str, Any]:
        """Return numbers for the status, as JSON values.

        `alive` is False if the ingestion has ended because of a defect and only a restart helps. `works` is False while
        no rows are written although there are records to read. `rebalances` and `overtaken` rise when another agent
        reads a topic of this agent. All are optional.
        """
        ...

    def close(self) -> None:
        """Finish and end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """The parts of an agent.

    Attributes:
        agent: the agent's identity.
        members: its membership.
        watches: its clusters.
        ingestion: reads the topics.
        workers: called at each step; after a failure the last result stays.
        configured: the workers before the first result.
        lanes: the grouping of topics.
        balance: settings of the placement.
        prefer_zones: whether topics are placed near their replicas, as far as the balance allows.
        hand_over_s: longest time for which this agent still reads topics that move to another agent, seconds.
        growth_s: the same for topics that move because other topics appeared or are gone, and for partitions that move
            because their topic got more of them, seconds.
        paused: returns the names of a source's topics that are not read for now; None while they are not known, and
            then nothing of the source is read.
    """

    agent: Agent
    members: Members
    watches: Sequence[ClusterWatch]
    ingestion: Ingestion
    workers: Callable[[Sequence[ClusterWatch]], FleetWorkers]
    configured: FleetWorkers = field(default_factory=FleetWorkers)
    lanes: Lanes = field(default_factory=Lanes)
    balance: Balance = field(default_factory=Balance)
    prefer_zones: bool = False
    hand_over_s: float = 0.0
    growth_s: float = 0.0
    paused: Callable[[str], Collection[str] | None] = lambda _source: ()
