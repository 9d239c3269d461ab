"""The agent's loop: reads the view and the topics, computes the agent's own topics, and starts their ingestion."""

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assignors.errors import AssignorError
from assignors.fleet.agent_parts import AgentParts
from assignors.fleet.agents_per_topic import FleetWorkers
from assignors.fleet.agents_view import View
from assignors.fleet.agreed_workers import KnownWorkers
from assignors.fleet.drifted_settings import WORKERS, settings_drift
from assignors.fleet.fleet_topic import FleetTopic, once_each
from assignors.fleet.hand_over import HandOver, await_successors
from assignors.fleet.lanes import Lane, computes_alike
from assignors.fleet.membership_contract import Membership, Standing
from assignors.fleet.topic_descriptions import Sighting
from assignors.fleet.topic_placement import Decision, decide
from assignors.fleet.topic_zones import Zones, known_zones, with_zones, zones_of
from assignors.fleet.unreached_clusters import UnreachedClusters

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_STUCK_S = 30.0
_WORKERS_S = 15.0  # longest wait for the first numbers before the agent joins with those of its configuration
_NAMED = 5
_ZONES_S = 30.0  # for which previous zones stay known, besides the time in which agents look at their clusters


class FleetAgent:
    """One agent of a fleet.

    Contract:
    * `step` never raises for external failures: a cluster, the membership or the autoscaler may be away.
    * The topics that it reads change only if the view, the topics or the workers change.
    * The agent joins the fleet after a first answer about its topics.
    * An isolated or refused agent reads nothing; an agent whose membership server is away continues.
    * When an agent joins, and when this one leaves, topics that move are read until the other agent has started.
    """

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._basis: tuple[View, tuple[FleetTopic, ...], FleetWorkers, Zones | None] | None = None
        self._decision: Decision | None = None
        self._shares: Sequence[FleetTopic] = ()
        self._assigned: Mapping[Lane, frozenset[FleetTopic]] = {}
        self._known = KnownWorkers()
        self._unreached = UnreachedClusters()
        self._zones = known_zones(_ZONES_S + parts.growth_s)
        self._declared = parts.agent
        self._common: Sequence[FleetTopic] = ()
        self._notes: dict[str, str] = {}
        self._look = threading.Event()
        self._began = self._turned = time.monotonic()
        self._joined = False
        self._ending = False
        self._hand_over = HandOver(parts.hand_over_s, parts.growth_s)

    def wake(self) -> None:
        """Run the next step now, because of a change."""
        self._look.set()

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set. Then leave the fleet first, and stop reading once the others have started."""
        parts = self._parts
        for watch in parts.watches:
            watch.start()
        try:
            while not stop.is_set():
                self.step()
                self._pause(stop)
        finally:
            self._ending = True
            self._leave()
            parts.ingestion.assign({})
            parts.ingestion.close()
            for watch in parts.watches:
                watch.close()

    def _leave(self) -> None:
        """Leave the fleet, and continue to read until the agents that take over the topics have started."""
        parts, state = self._parts, self._parts.members.state()
        others = state.reads and state.view is not None and set(state.view.ids) - {parts.agent.id}
        parts.members.close()
        if others and self._assigned and parts.hand_over_s > 0:
            log.info("fleet: agent %r hands over %s", parts.agent.id, _some(_labels(self._assigned)))
            await_successors(self._signs, parts.hand_over_s)

    def _signs(self) -> int:
        figures = self._parts.ingestion.figures()
        return int(figures.get("rebalances", 0) + figures.get("overtaken", 0))

    def step(self) -> None:
        """Read the current state once, and act on it."""
        self._turned = time.monotonic()
        parts, seen = self._parts, [watch.seen() for watch in self._parts.watches]
        if not all(one.looked for one in seen):
            return  # a topic read for one source might belong to another
        answered = {
            watch.source.name: one.answers if one.known else None
            for watch, one in zip(parts.watches, seen, strict=True)
        }
        self._unreached.look(answered, time.monotonic())
        topics, twice = once_each(topic for one in seen for topic in one.topics)
        if parts.prefer_zones:
            self._zones.take(zones_of(topics), time.monotonic())
        self._refresh_workers()
        if not self._joins(seen):
            return
        state = parts.members.state()
        if not state.reads or state.view is None:
            self._stop_reading(state)
            return
        self._note_all("twice", twice)
        zones = self._zones.agreed(state.view, parts.agent.id)
        basis = (state.view, topics, self._known.in_force(state.view, parts.agent.id), zones)
        reweighed = self._basis is not None and self._basis[2].weights != basis[2].weights
        if basis != self._basis:
            self._decide(*basis)
        if self._decision is not None:
            lanes = parts.lanes.agreed(state.view)
            mine = self._shares if lanes.seated else {*self._decision.of(parts.agent.id), *self._common}
            reads = self._hand_over.topics(state.view, mine, topics, time.monotonic(), reweighed=reweighed)
            self._assign(lanes.group(self._unpaused(reads)))

    def _unpaused(self, reads: Collection[FleetTopic]) -> list[FleetTopic]:
        """Leave out paused topics. Only the reading stops: the placement stays, so that no other topic moves."""
        paused = {source: self._parts.paused(source) for source in {one.source for one in reads}}
        return [one for one in reads if (names := paused[one.source]) is not None and one.name not in names]

    def _joins(self, seen: Sequence[Sighting]) -> bool:
        """Join once the topics of a cluster are known, and return whether this has happened.

        The others give topics to an agent as soon as it has joined. If it does not know the topics yet, it reads none.
        """
        if not self._joined and not self._known.empty and any(one.known for one in seen):
            self._joined = True
            self._paused()  # asks for the pauses, which are known by the time the agent has joined
            self._parts.members.start()
        return self._joined

    def status(self) -> dict[str, Any]:
        """Return the agent's status, as JSON values."""
        parts, state = self._parts, self._parts.members.state()
        mine = sorted(_labels(self._assigned))
        problems = [problem for watch in parts.watches for problem in watch.seen().problems]
        age_s = None if state.heard_s is None else round(time.monotonic() - state.heard_s, 1)
        problems += [state.reason] if state.reason else []
        problems += [*self._notes.values(), *parts.ingestion.problems()]
        figures = parts.ingestion.figures()
        return {
            "agent": parts.agent.value(),
            "standing": state.standing.value,
            "view": state.view.value() if state.view else None,
            "view_age_s": age_s,
            "topics": mine,
            "paused": self._paused(),
            "lanes": len(self._assigned),
            "problems": problems,
            "reads": state.reads,
            "turns": time.monotonic() - self._turned < _STUCK_S and figures.get("alive", True),
            "unready": "; ".join(self._unready(state, figures)),
            "at": time.time(),
            **figures,
        }

    def _paused(self) -> list[str]:
        seen = [topic for watch in self._parts.watches for topic in watch.seen().topics]
        return sorted(topic.label for topic in seen if topic.name in (self._parts.paused(topic.source) or ()))

    def _unready(self, state: Membership, figures: Mapping[str, Any]) -> list[str]:
        """Return why the agent is not ready; a problem of one topic or cluster among many is not a reason."""
        if self._ending:
            return ["it ends"]
        problems = [problem for watch in self._parts.watches for problem in watch.seen().problems]
        if not self._joined:
            return problems or ["its topics are not known yet"]
        if not state.reads:
            return [f"{state.standing.value}: {state.reason or 'no view of the fleet yet'}"]
        if self._decision is None:
            return ["its topics are not known yet"]
        if not any(watch.seen().answers for watch in self._parts.watches):
            return problems
        return (
            []
            if figures.get("works", True)
            else [*self._parts.ingestion.problems()] or ["nothing comes into the tables"]
        )

    def owners(self) -> dict[str, list[str]]:
        """Return the agents of each topic, by label, from this agent's last decision."""
        made = self._decision
        return {} if made is None else {made.topics[one].label: list(who) for one, who in made.workers.items()}

    def topics(self) -> list[FleetTopic]:
        """Return all topics of the fleet, from this agent's last decision."""
        return [] if self._decision is None else list(self._decision.topics.values())

    def _decide(self, view: View, topics: tuple[FleetTopic, ...], workers: FleetWorkers, zones: Zones | None) -> None:
        before = self._decision
        self._basis = (view, topics, workers, zones)
        topics = with_zones(topics, zones)
        self._decision = made = decide(view, topics, workers, self._parts.balance)
        self._shares = made.shares_of(self._parts.agent.id)
        alike = computes_alike(view) and not self._parts.lanes.silent
        # Agents that compute different placements may each leave a topic to another one. So each topic has one reader
        # that all of them know.
        self._common = () if alike else decide(view, topics).of(self._parts.agent.id)
        mine = len(made.of(self._parts.agent.id))
        moved = "" if before is None else f", {made.moved(before)} seats moved"
        log.info(
            "fleet: view %d of %d agents: %d topics, %d mine%s",
            view.version,
            len(view.members),
            len(topics),
            mine,
            moved,
        )
        self._note_all("override", workers.unknown(topics, view.ids))
        # Agents take up new numbers one after another, which is not a problem while they have other numbers in common.
        self._note_all("settings", settings_drift(view.members, but=(WORKERS,) if alike else ()))

    def _assign(self, lanes: Mapping[Lane, frozenset[FleetTopic]]) -> None:
        if lanes == self._assigned:
            return
        before, after = _labels(self._assigned), _labels(lanes)
        for verb, topics in (("starts", after - before), ("stops", before - after)):
            if topics:
                log.info("fleet: agent %r %s %s", self._parts.agent.id, verb, _some(topics))
        self._assigned = lanes
        self._parts.ingestion.assign(lanes)

    def _stop_reading(self, state: Membership) -> None:
        if self._assigned:
            log.warning(
                "fleet: agent %r stops reading: %s (%s)", self._parts.agent.id, state.standing.value, state.reason
            )
        self._hand_over.drop()
        self._assign({})

    def _refresh_workers(self) -> None:
        try:
            self._known.take(self._parts.workers(self._parts.watches), time.monotonic())
        except AssignorError as error:
            self._note("workers", f"workers stay as they are: {error}")
            # An agent with other numbers than the rest would send all agents to their groups.
            if self._known.empty and time.monotonic() - self._began > _WORKERS_S:
                self._known.take(self._parts.configured, time.monotonic())
        else:
            self._notes.pop("workers", None)
        self._declare()

    def _declare(self) -> None:
        if not self._parts.agent.settings or self._known.empty:
            return  # it declares nothing, as an agent of an own ingestion may
        declared = self._unreached.declared(self._known.declared(self._parts.agent))
        if not self._zones.empty:
            declared = self._zones.declared(declared)
        if declared != self._declared:
            self._declared = declared
            self._parts.members.declare(declared.settings)

    def _note(self, key: str, problem: str) -> None:
        if self._notes.get(key) != problem:
            log.warning("fleet: %s", problem)
        self._notes[key] = problem

    def _note_all(self, kind: str, problems: Sequence[str]) -> None:
        for number, problem in enumerate(problems):
            self._note(f"{kind} {number}", problem)
        for key in [key for key in self._notes if key.startswith(f"{kind} ") and int(key.split()[1]) >= len(problems)]:
            del self._notes[key]

    def _pause(self, stop: threading.Event) -> None:
        seen = self._parts.members.state()
        deadline = time.monotonic() + _LOOK_S
        while not stop.is_set() and not self._look.is_set() and (left := deadline - time.monotonic()) > 0:
            if self._parts.members.wait(seen, min(left, 0.1)) is not seen and self._changed(seen):
                break
        self._look.clear()

    def _changed(self, seen: Membership) -> bool:
        now = self._parts.members.state()
        return (now.view, now.standing) != (seen.view, seen.standing) or now.standing is Standing.JOINING


def _labels(lanes: Mapping[Lane, frozenset[FleetTopic]]) -> set[str]:
    return {topic.label for topics in lanes.values() for topic in topics}


def _some(labels: set[str]) -> str:
    named = ", ".join(sorted(labels)[:_NAMED])
    return f"{len(labels)} topic{'' if len(labels) == 1 else 's'}: {named}{', ...' if len(labels) > _NAMED else ''}"
