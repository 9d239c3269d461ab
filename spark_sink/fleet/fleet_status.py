"""The status of a fleet, from outside: the live agents, and the decision that every agent therefore computes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from assignors.errors import AssignorError, FleetError
from assignors.fleet import (
    ClusterWatch,
    Decision,
    FleetTopic,
    FleetWorkers,
    KnownWorkers,
    Line,
    Membership,
    decide,
    explain,
    once_each,
    status_drift,
)
from assignors.scaling import WorkersFeed
from spark_sink.fleet.agent_process import members
from spark_sink.fleet.fleet_settings import FleetSettings, StaticMembership
from spark_sink.fleet.workers_in_force import WorkersNow


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """A fleet at one time.

    Attributes:
        membership: the live agents, from the membership's server.
        decision: the decision of every agent with this view.
        lines: the lines of the requested topics.
        problems: one sentence each.
    """

    membership: Membership
    decision: Decision
    lines: Sequence[Line]
    problems: Sequence[str]

    def value(self) -> dict[str, Any]:
        """Return a JSON value."""
        view, loads = self.decision.view, self.decision.loads
        return {
            "version": view.version,
            "agents": [
                {**agent.value(), "topics": loads[agent.id], "beat_s": self.membership.beats.get(agent.id)}
                for agent in view.members
            ],
            "departed": [agent.id for agent in view.departed],
            "connections": {
                "agent_topic": self.decision.connections,
                "agent_cluster": self.decision.cluster_connections,
                "all_to_all": len(view.members) * len(self.decision.topics),
            },
            "topics": {
                self.decision.topics[identity].label: list(agents) for identity, agents in self.decision.workers.items()
            },
            "lines": [_line(line) for line in self.lines],
            "problems": list(self.problems),
        }


def look(settings: FleetSettings, topics: Sequence[str] = ()) -> FleetStatus:
    """Read the membership and the clusters, and decide as an agent would.

    Args:
        settings: settings of the fleet.
        topics: names or `<source>/<name>` of the topics to explain.

    Raises:
        FleetError: the membership's server does not answer, or there is no such topic.
    """
    watches = [ClusterWatch(settings.source(name), 1.0, lambda: None) for name in settings.sources]
    with ThreadPoolExecutor(len(watches) + 1) as asking:
        # All clusters in parallel, so that unreachable ones cost their timeout only once.
        observed = asking.submit(_observe, settings)
        seen = list(asking.map(ClusterWatch.look, watches))
        membership = observed.result()
    found, problems = once_each(topic for one in seen for topic in one.topics)
    problems += [problem for one in seen for problem in one.problems]
    workers, unread = _workers(settings, watches, problems)
    if membership.view is None or not membership.view.members:
        raise FleetError(f"fleet {settings.name!r} has no living agent: start one with `azimuth agent`")
    decision = decide(membership.view, found, workers, settings.balance)
    problems += workers.unknown(found, membership.view.ids)
    mine = KnownWorkers()
    mine.take(workers, 0.0)
    this = replace(mine.declared(settings.agent_id), id="this file")
    problems += status_drift(membership.view, this, unread=unread)
    lines = [explain(decision, _find(found, name).identity, workers, settings.balance) for name in topics]
    return FleetStatus(membership=membership, decision=decision, lines=lines, problems=problems)


def _observe(settings: FleetSettings) -> Membership:
    given = settings.membership
    if isinstance(given, StaticMembership) and given.agents:
        # A reader of a static fleet's status need not be listed in it.
        settings = settings.model_copy(update={"agent": given.agents[0].id})
    return members(settings).observe()


def _workers(
    settings: FleetSettings, watches: Sequence[ClusterWatch], problems: list[str]
) -> tuple[FleetWorkers, bool]:
    """Return the workers, and whether the present ones could not be read."""
    feed = None
    if settings.workers.topic is not None:
        feed = WorkersFeed(settings.kafka(settings.home), settings.workers.topic)
    try:
        return WorkersNow(settings.fleet_workers, settings.name, settings.workers.file, feed)(watches), False
    except AssignorError as error:
        problems.append(str(error))
        return settings.fleet_workers, True
    finally:
        if feed is not None:
            feed.close()


def _find(topics: Sequence[FleetTopic], name: str) -> FleetTopic:
    found = [topic for topic in topics if name in {topic.name, topic.label, topic.identity}]
    if len(found) != 1:
        why = "is on several clusters: name it <source>/<topic>" if found else "is none of the fleet's"
        raise FleetError(f"topic {name!r} {why}")
    return found[0]


def _line(line: Line) -> dict[str, Any]:
    return {
        "topic": line.topic.label,
        "identity": line.topic.identity,
        "next": line.next,
        "added": line.added,
        "places": [
            {"rank": one.rank, "agent": one.agent, "reads": one.reads, "reason": one.reason} for one in line.places
        ],
    }
