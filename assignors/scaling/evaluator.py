"""The evaluator: observes, decides, records, and publishes if it is elected."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import structlog

from assignors.errors import ScalingError
from assignors.scaling.alerts import Alert, Outbox
from assignors.scaling.decision_journal import DecisionJournal, entry
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.kafka_lag import LagSource, TopicFacts
from assignors.scaling.observation import Observation, Window, window
from assignors.scaling.pipelines import Pipeline
from assignors.scaling.policy_contract import State
from assignors.scaling.stalled_lag import SHARED, finding_of_many
from assignors.scaling.state_store import Store
from assignors.scaling.topic_rates import TopicRates
from assignors.scaling.workers_of_topic import Decision, decide
from assignors.scaling.workers_records import ScaledTopic, WorkersRecord

_log = structlog.get_logger("azimuth.scaling")
_MANY = 4
_ABSENT_ROUNDS = 3
"""A topic that this many consecutive rounds do not find counts as deleted; a broker that just started lists too few."""


class Publisher(Protocol):
    """Publishes numbers, as `WorkersPublisher` does."""

    def publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        """Write one number, or withdraw it with None."""
        ...


class Evaluator:
    """Decides for every topic of every pipeline, in rounds.

    Contract:
    * Without a publisher it is a dry run: it writes only the journal and changes no state. Each round shows the
      decision for the current workers of the topics.
    * The error of one pipeline never ends a round: it is reported, and the next round retries. Published numbers stay
      in force until then.
    * A number is part of the state only if it was published. If the numbers in force can be read, they override the
      state, so the two cannot differ for longer than a round.
    * A topic that is not found keeps its number for some rounds.
    * A journal that cannot be written is reported, and decisions continue.
    * No round waits for a hook; `close`, also at the end of `run`, waits some seconds for hooks with waiting alerts.
    """

    def __init__(
        self, settings: ScalingSettings, source: LagSource, store: Store, publisher: Publisher | None = None
    ) -> None:
        """Prepare a dry run, or, with a publisher, a real run."""
        self._settings, self._source, self._store, self._publisher = settings, source, store, publisher
        self._outbox = Outbox()
        self._said: dict[tuple[str, str], str] = {}
        self._new: list[tuple[ScaledTopic, str, str]] = []
        self._absent: dict[ScaledTopic, int] = {}
        self._cluster: str | None = None
        self._journal = DecisionJournal(settings.journal, settings.journal_bytes)
        self._in_force: dict[ScaledTopic, WorkersRecord] = {}
        self._numbers: Callable[[], Mapping[ScaledTopic, WorkersRecord]] | None = None
        self._leads: Callable[[str], bool] = lambda _: True
        self._announce: Callable[[], None] = lambda: None
        self._published = False
        self._rates = {group: TopicRates() for group in settings.groups}
        self.groups: Mapping[str, Sequence[Decision]] = {}
        """The last round's decisions by group; a group with a pipeline that could not be observed is left out."""

    def alert(self, alerts: Sequence[Alert]) -> None:
        """Send findings to these hooks: each once until it is gone, and once for many topics that share it."""
        self.close()
        self._outbox = Outbox(alerts)

    def follow(self, current: Mapping[ScaledTopic, WorkersRecord]) -> None:
        """Start from the numbers in force."""
        self._in_force = dict(current)

    def read_back(self, numbers: Callable[[], Mapping[ScaledTopic, WorkersRecord]]) -> None:
        """Read the numbers in force before each round.

        Args:
            numbers: returns all current numbers; raises ScalingError if they cannot be read.
        """
        self._numbers = numbers

    def elect(self, leads: Callable[[str], bool]) -> None:
        """Publish the numbers of a group only while `leads` returns True; else decide as in a dry run."""
        self._leads = leads

    def announce(self, tell: Callable[[], None]) -> None:
        """Call `tell` at the end of each round that published a number."""
        self._announce = tell

    def round(self) -> list[Decision]:
        """Decide once for every topic.

        Returns:
            The decisions; pipelines that could not be observed are left out and reported.
        """
        made: dict[str, list[Decision]] = {group: [] for group in self._settings.groups}
        failed: set[str] = set()
        self.groups = {}
        if not self._refresh():
            return []
        for group, rates in self._rates.items():
            rates.begin(
                {one.topic: record.records_per_s for one, record in self._in_force.items() if one.group == group}
            )
        for name, pipeline in self._settings.pipelines.items():
            try:
                made[pipeline.group] += self._pipeline(pipeline)
            except ScalingError as error:
                _log.error("a pipeline could not be decided on", pipeline=name, reason=str(error))
                self._report(ScaledTopic(self._cluster or "", pipeline.group, name), {"error": str(error)})
                failed.add(pipeline.group)
            self._tell()
        if self._published:
            self._published = False
            self._announce()
        self.groups = {group: tuple(found) for group, found in made.items() if group not in failed}
        failure = {"journal": self._journal.failure} if self._journal.failure else {}
        self._report(ScaledTopic("", "", str(self._settings.journal)), failure)
        self._tell()
        return [one for found in made.values() for one in found]

    def run(self, stopped: threading.Event, after_round: Callable[[list[Decision]], None] | None = None) -> None:
        """Repeat rounds until `stopped` is set, then close."""
        try:
            while not stopped.is_set():
                made = self.round()
                if after_round is not None:
                    after_round(made)
                stopped.wait(self._settings.interval_s)
        finally:
            self.close()

    def close(self) -> None:
        """Deliver waiting alerts, as far as the hooks take them in time."""
        self._outbox.close()

    def _refresh(self) -> bool:
        """Read the numbers in force; return False if that fails: a decision might then overwrite a newer number."""
        if self._numbers is None:
            return True
        where = ScaledTopic("", "", self._settings.workers_topic)
        try:
            self._in_force = dict(self._numbers())
        except ScalingError as error:
            _log.error("the numbers in force cannot be read", reason=str(error))
            self._report(where, {"error": str(error)})
            self._tell()
            return False
        self._report(where, {})
        return True

    def _pipeline(self, pipeline: Pipeline) -> list[Decision]:
        cluster = self._cluster = self._cluster or self._source.cluster_id()
        topics = self._source.topics(pipeline.topics, pipeline.pattern)
        self._retract(cluster, pipeline, topics)
        seen = self._source.observe(pipeline.group, topics)
        return [
            self._topic(pipeline, ScaledTopic(cluster, pipeline.group, topic), topics[topic], one)
            for topic, one in seen.items()
        ]

    def _retract(self, cluster: str, pipeline: Pipeline, topics: Collection[str]) -> None:
        """Report missing topics, and withdraw the numbers of topics that have been missing for some rounds."""
        numbered = {
            one.topic for one in self._in_force if one[:2] == (cluster, pipeline.group) and pipeline.names(one.topic)
        }
        for topic in {*pipeline.topics, *numbered} - set(topics):
            name = ScaledTopic(cluster, pipeline.group, topic)
            self._report(name, {"missing": f"{topic}: there is no such topic"})
            self._absent[name] = self._absent.get(name, 0) + 1
            if self._absent[name] >= _ABSENT_ROUNDS and name in self._in_force and self._may_publish(pipeline):
                self._publish(name, None)
        for topic in topics:
            self._absent.pop(ScaledTopic(cluster, pipeline.group, topic), None)

    def _topic(self, pipeline: Pipeline, name: ScaledTopic, facts: TopicFacts, one: Observation) -> Decision:
        key = _key(name)
        self._store.add(key, one, pipeline.window_s)
        current = self._in_force.get(name)
        # Without a number in force, readers use their configuration, whatever was decided before.
        workers = max(pipeline.workers, pipeline.min_workers) if current is None else current.workers
        state = replace(self._store.state(key) or State(workers=workers), workers=workers)
        recent = window(self._store.recent(key))
        decision = decide(pipeline.scaler(facts.retention_s), recent, state, name.topic)
        record = replace(self._record(pipeline, decision), records_per_s=self._rate(pipeline, name, recent))
        applied = self._may_publish(pipeline) and not _same(current, record)
        if applied:
            self._publish(name, record)
        if self._may_publish(pipeline):
            changed_s = one.time_s if applied else decision.state.changed_s
            self._store.keep(key, replace(decision.state, changed_s=changed_s))
        else:
            # No number was published: the next round starts from the same number, but keeps wishes and measurements.
            self._store.keep(key, replace(decision.state, workers=state.workers, changed_s=state.changed_s))
        self._journal.append(entry(decision, name, pipeline.policy, applied=applied))
        self._report(name, decision.findings)
        return decision

    def _rate(self, pipeline: Pipeline, name: ScaledTopic, recent: Window) -> float | None:
        if not pipeline.publish_rates:
            return None
        record = self._in_force.get(name)
        return self._rates[pipeline.group].next(name.topic, record.records_per_s if record else None, recent)

    def _may_publish(self, pipeline: Pipeline) -> bool:
        return self._publisher is not None and self._leads(pipeline.group)

    def _publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        if self._publisher is None:
            return
        self._publisher.publish(name, record)
        self._published = True
        if record is None:
            self._in_force.pop(name, None)
        else:
            self._in_force[name] = record

    def _record(self, pipeline: Pipeline, decision: Decision) -> WorkersRecord:
        return WorkersRecord(
            workers=decision.workers,
            at_ms=int(decision.view.window.now_s * 1000),
            reason=decision.reason,
            policy=pipeline.policy,
            max_poll_records=pipeline.max_poll_records,
            poll_timeout_ms=pipeline.poll_timeout_ms,
        )

    def _report(self, name: ScaledTopic, findings: Mapping[str, str]) -> None:
        """Report new findings; a finding that went away may be reported again."""
        key = _key(name)
        for kind, text in findings.items():
            if (key, kind) not in self._said:
                self._new.append((name, kind, text))
        self._said = {at: text for at, text in self._said.items() if at[0] != key}
        self._said |= {(key, kind): text for kind, text in findings.items()}

    def _tell(self) -> None:
        """Send one message per finding, or one for many topics with the same, as of a group that never committed."""
        for kind in dict.fromkeys(kind for _, kind, _ in self._new):
            found = [(name, text) for name, new, text in self._new if new == kind]
            names = [name.topic for name, _ in found]
            if len(found) >= _MANY and kind in SHARED:
                found = [(found[0][0], finding_of_many(kind, names))]
            for name, text in found:
                message: dict[str, Any] = {"kind": kind, "topic": name.topic, "group": name.group, "text": text}
                self._outbox.tell(message | ({"topics": names} if len(names) > len(found) else {}))
        self._new.clear()


def _key(name: ScaledTopic) -> str:
    return "/".join(name)


def _same(current: WorkersRecord | None, new: WorkersRecord) -> bool:
    """Return whether two records are equal for their followers."""

    def said(record: WorkersRecord) -> tuple[float | None, ...]:
        return record.workers, record.max_poll_records, record.poll_timeout_ms, record.records_per_s

    return current is not None and said(current) == said(new)
