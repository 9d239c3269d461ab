"""The status of a fleet, from outside: the live agents, and the decision that every agent therefore computes."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from assignors.errors import AssignorError, FleetError, PauseError
from assignors.fleet import (
    ClusterWatch,
    Decision,
    FleetTopic,
    FleetWorkers,
    KnownWorkers,
    Line,
    Membership,
    agreed_zones,
    decide,
    explain,
    once_each,
    status_drift,
    with_zones,
)
from assignors.pauses import Pause, PausesFeed
from assignors.scaling import ScaledTopic, WorkersFeed, WorkersRecord
from spark_sink.fleet.agent_process import members
from spark_sink.fleet.fleet_lag import FleetLag, TopicFigures
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.settings_tables import StaticMembership
from spark_sink.fleet.workers_in_force import WorkersNow

_BETWEEN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """A fleet at one time.

    Attributes:
        membership: the live agents, from the membership's server.
        decision: the decision of every agent with this view.
        lines: the lines of the requested topics.
        problems: one sentence each.
        paused: the topics that are not read for now, by label.
        figures: lag and rate of all topics, by label.
        published: the autoscaler's numbers of the topics in `lines`, by label; none without a workers topic.
    """

    membership: Membership
    decision: Decision
    lines: Sequence[Line]
    problems: Sequence[str]
    paused: Mapping[str, Pause] = field(default_factory=dict)
    figures: Mapping[str, TopicFigures] = field(default_factory=dict)
    published: Mapping[str, WorkersRecord] = field(default_factory=dict)

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
            "paused": {label: asdict(pause) for label, pause in self.paused.items()},
            "figures": {label: asdict(one) for label, one in self.figures.items()},
            "lines": [_line(line, self.published.get(line.topic.label)) for line in self.lines],
            "problems": list(self.problems),
        }


def collect_status(settings: FleetSettings, topics: Sequence[str] = ()) -> FleetStatus:
    """Read the membership and the clusters, and decide as an agent would.

    Args:
        settings: settings of the fleet.
        topics: names or `<source>/<name>` of the topics to explain.

    Raises:
        FleetError: the membership's server does not answer, or there is no such topic.
    """
    watches = [ClusterWatch(settings.source(name), 1.0, lambda: None) for name in settings.sources]
    with ThreadPoolExecutor(2 * len(watches) + 1) as asking:
        # All clusters in parallel, so that unreachable ones cost their timeout only once.
        observed = asking.submit(_observe, settings)
        read = asking.map(lambda name: _paused(settings, name), settings.sources)
        seen = list(asking.map(ClusterWatch.look, watches))
        membership = observed.result()
        paused = {label: pause for one in read for label, pause in one.items()}
    found, problems = once_each(topic for one in seen for topic in one.topics)
    problems += [problem for one in seen for problem in one.problems]
    workers, records, unread = _workers(settings, watches, problems)
    if membership.view is None or not membership.view.members:
        raise FleetError(f"fleet {settings.name!r} has no live agent: start one with `azimuth agent`")
    figures = _figures(settings, watches)
    found = with_zones(found, agreed_zones(membership.view, found) if settings.prefer_zones else None)
    decision = decide(membership.view, found, workers, settings.placement)
    problems += workers.unknown(found, membership.view.ids)
    mine = KnownWorkers()
    mine.take(workers, 0.0)
    this = replace(mine.declared(settings.agent_id), id="this file")
    problems += status_drift(membership.view, this, unread=unread)
    lines = [explain(decision, _find(found, name).identity, workers, settings.placement) for name in topics]
    return FleetStatus(
        membership=membership,
        decision=decision,
        lines=lines,
        problems=problems,
        paused=paused,
        figures=figures,
        published=_published(records, settings.name, [line.topic for line in lines]),
    )


def _observe(settings: FleetSettings) -> Membership:
    given = settings.membership
    if isinstance(given, StaticMembership) and given.agents:
        # A reader of a static fleet's status need not be listed in it.
        settings = settings.model_copy(update={"agent": given.agents[0].id})
    return members(settings).observe()


def _figures(settings: FleetSettings, watches: Sequence[ClusterWatch]) -> dict[str, TopicFigures]:
    """Look twice, because a rate needs two looks; a cluster that does not answer is not asked again."""
    topics = {one.source.name: one.seen().topics for one in watches if one.seen().answers}
    lag = FleetLag.of(settings)
    try:
        lag.look(topics)
        time.sleep(_BETWEEN_S)
        return lag.look(topics)
    finally:
        lag.close()


def _paused(settings: FleetSettings, source: str) -> dict[str, Pause]:
    """Return the pauses of a source's topics, by label; none if its brokers do not answer, which the watch reports."""
    with PausesFeed(settings.kafka(source)) as feed, contextlib.suppress(PauseError):
        feed.refresh(to_end=True)
    return {f"{source}/{topic}": pause for topic, pause in feed.paused(settings.name).items()}


def _workers(
    settings: FleetSettings, watches: Sequence[ClusterWatch], problems: list[str]
) -> tuple[FleetWorkers, Mapping[ScaledTopic, WorkersRecord], bool]:
    """Return the workers, the records of the workers topic, and whether the current workers could not be read."""
    feed = None
    if settings.workers.topic is not None:
        feed = WorkersFeed(settings.kafka(settings.home), settings.workers.topic)
    try:
        return WorkersNow.of(settings, feed)(watches), {} if feed is None else dict(feed.records), False
    except AssignorError as error:
        problems.append(str(error))
        return settings.fleet_workers, {}, True
    finally:
        if feed is not None:
            feed.close()


def _published(
    records: Mapping[ScaledTopic, WorkersRecord], group: str, topics: Sequence[FleetTopic]
) -> dict[str, WorkersRecord]:
    """Return the autoscaler's records of these topics, by label."""
    found = {topic.label: records.get(ScaledTopic(topic.cluster, group, topic.name)) for topic in topics}
    return {label: record for label, record in found.items() if record is not None}


def _find(topics: Sequence[FleetTopic], name: str) -> FleetTopic:
    found = [topic for topic in topics if name in {topic.name, topic.label, topic.identity}]
    if len(found) != 1:
        why = "is on several clusters: name it <source>/<topic>" if found else "is none of the fleet's"
        raise FleetError(f"topic {name!r} {why}")
    return found[0]


def _line(line: Line, published: WorkersRecord | None) -> dict[str, Any]:
    return {
        "topic": line.topic.label,
        "identity": line.topic.identity,
        "next": line.next,
        "added": line.added,
        "published": None if published is None else asdict(published),
        "places": [
            {"rank": one.rank, "agent": one.agent, "reads": one.reads, "reason": one.reason} for one in line.places
        ],
    }
