"""The evaluator: observe, decide, record, and publish if it may."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import structlog

from assignors.errors import ScalingError
from assignors.scaling import decision_journal
from assignors.scaling.alerts import Alert, Outbox
from assignors.scaling.decision import Decision, decide
from assignors.scaling.evaluator_settings import ScalingSettings
from assignors.scaling.kafka_lag import LagSource, TopicFacts
from assignors.scaling.lag_gate import SHARED, finding_of_many
from assignors.scaling.observation import Observation, window
from assignors.scaling.pipelines import Pipeline
from assignors.scaling.policy_contract import State
from assignors.scaling.state_store import Store
from assignors.scaling.workers_topic import ScaledTopic, WorkersRecord

_log = structlog.get_logger("azimuth.scaling")
_MANY = 4


class Publisher(Protocol):
    """Takes numbers, as `WorkersPublisher` does."""

    def publish(self, name: ScaledTopic, record: WorkersRecord | None) -> None:
        """Write one number, or take it back with None."""
        ...


class Evaluator:
    """Decides for every topic of every pipeline, one round after the other.

    Contract:
    * Without a publisher it is a dry run: nothing is written but the journal, and no state changes by it: each round
      says what would be done from the workers that the topics have now.
    * A round never ends because of one pipeline: its error is reported, and the next round asks again. What was
      published stays in force meanwhile.
    * A number is part of the state only when it was published.
    * No round waits for a hook; `close`, also at the end of `run`, waits some seconds for those that still have alerts.
    """

    def __init__(
        self, settings: ScalingSettings, source: LagSource, store: Store, publisher: Publisher | None = None
    ) -> None:
        """Prepare a dry run, or with a publisher the real thing."""
        self._settings, self._source, self._store, self._publisher = settings, source, store, publisher
        self._outbox = Outbox()
        self._said: dict[tuple[str, str], str] = {}
        self._new: list[tuple[ScaledTopic, str, str]] = []
        self._known: dict[str, set[str]] = {}
        self._cluster: str | None = None

    def alert(self, alerts: Sequence[Alert]) -> None:
        """Tell these hooks from now on; each finding once until it is gone, and once for many topics that share it."""
        self.close()
        self._outbox = Outbox(alerts)

    def follow(self, current: Mapping[ScaledTopic, WorkersRecord]) -> None:
        """Begin with the numbers that are in force."""
        for name, record in current.items():
            if (known := self._store.state(_key(name))) is None or known.workers != record.workers:
                state = known or State(workers=record.workers)
                self._store.keep(_key(name), replace(state, workers=record.workers))

    def round(self) -> list[Decision]:
        """Decide once for every topic.

        Returns:
            The decisions; pipelines that could not be asked are left out and reported.
        """
        made: list[Decision] = []
        for name, pipeline in self._settings.pipelines.items():
            try:
                made += self._pipeline(name, pipeline)
            except ScalingError as error:
                _log.error("a pipeline could not be decided on", pipeline=name, reason=str(error))
                self._report(ScaledTopic(self._cluster or "", pipeline.group, name), {"error": str(error)})
            self._tell()
        return made

    def run(self, stopped: threading.Event, after_round: Callable[[list[Decision]], None] | None = None) -> None:
        """Go on until told to stop, then close."""
        try:
            while not stopped.is_set():
                made = self.round()
                if after_round is not None:
                    after_round(made)
                stopped.wait(self._settings.interval_s)
        finally:
            self.close()

    def close(self) -> None:
        """Deliver what hooks have not been told yet, as far as they take it in time."""
        self._outbox.close()

    def _pipeline(self, name: str, pipeline: Pipeline) -> list[Decision]:
        cluster = self._cluster = self._cluster or self._source.cluster_id()
        topics = self._source.topics(pipeline.topics, pipeline.pattern)
        missing = dict.fromkeys((*pipeline.topics, *self._known.get(name, ())), "there is no such topic")
        for topic, text in missing.items():
            if topic not in topics:
                self._report(ScaledTopic(cluster, pipeline.group, topic), {"missing": f"{topic}: {text}"})
        for topic in self._known.get(name, set()) - topics.keys():
            self._forget(ScaledTopic(cluster, pipeline.group, topic))
        self._known[name] = set(topics)
        seen = self._source.observe(pipeline.group, topics)
        return [
            self._topic(pipeline, ScaledTopic(cluster, pipeline.group, topic), topics[topic], one)
            for topic, one in seen.items()
        ]

    def _topic(self, pipeline: Pipeline, name: ScaledTopic, facts: TopicFacts, one: Observation) -> Decision:
        key = _key(name)
        self._store.add(key, one, pipeline.window_s)
        state = self._store.state(key) or State(workers=max(pipeline.workers, pipeline.min_workers))
        decision = decide(pipeline.scaler(facts.retention_s), window(self._store.recent(key)), state, name.topic)
        applied = False
        if self._publisher is not None and (decision.workers != decision.before or state.changed_s is None):
            self._publisher.publish(name, self._record(pipeline, decision))
            applied = True
        if self._publisher is not None:
            changed_s = one.time_s if applied else decision.state.changed_s
            self._store.keep(key, replace(decision.state, changed_s=changed_s))
        else:
            # Nothing was done: the next round starts from the same number, but knows what was wanted and measured.
            self._store.keep(key, replace(decision.state, workers=state.workers, changed_s=state.changed_s))
        decision_journal.append(
            self._settings.journal, decision_journal.entry(decision, name, pipeline.policy, applied=applied)
        )
        self._report(name, decision.findings)
        return decision

    def _record(self, pipeline: Pipeline, decision: Decision) -> WorkersRecord:
        return WorkersRecord(
            workers=decision.workers,
            at_ms=int(decision.view.window.now_s * 1000),
            reason=decision.reason,
            policy=pipeline.policy,
            max_poll_records=pipeline.max_poll_records,
            poll_timeout_ms=pipeline.poll_timeout_ms,
        )

    def _forget(self, name: ScaledTopic) -> None:
        if self._publisher is not None:
            self._publisher.publish(name, None)

    def _report(self, name: ScaledTopic, findings: Mapping[str, str]) -> None:
        """Tell what is new; what is gone may be told again."""
        key = _key(name)
        for kind, text in findings.items():
            if (key, kind) not in self._said:
                self._new.append((name, kind, text))
        self._said = {at: text for at, text in self._said.items() if at[0] != key}
        self._said |= {(key, kind): text for kind, text in findings.items()}

    def _tell(self) -> None:
        """One message a finding, or one for all topics where many have the same: a group that never committed has."""
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
