"""Elects the evaluator that publishes: the member that owns partition 0 of the workers topic in a consumer group.

Each scaled group has a separate election, so evaluators of different pipelines can share one workers topic. The
consumers of an election read no records: only their membership counts.
"""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

import structlog
from confluent_kafka import OFFSET_END, Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.clients.client_creation import made
from assignors.errors import PublishError, ScalingFileError

_log = structlog.get_logger("azimuth.scaling")

_POLL_S = 0.1
_SESSION_S = 10.0


class EvaluatorElection:
    """Takes part in the elections of some groups, in a separate thread.

    Contract:
    * `leads` is true for at most one evaluator of a group at a time. The only exception is the moment in which a
      process resumes that was stopped for longer than the session. The leader's next round, which reads the topic,
      overwrites a number that such a process publishes.
    * `leads` never waits. It is false until the end of the first rebalance; `wait` waits for that.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str, groups: Collection[str]) -> None:
        """Join.

        Args:
            kafka: librdkafka's properties of the cluster with the workers topic.
            topic: the workers topic.
            groups: the scaled groups.

        Raises:
            ScalingFileError: a property is invalid.
        """
        self._candidates = {group: _Candidate(kafka, topic, group) for group in sorted(groups)}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="azimuth-election", daemon=True)
        self._thread.start()

    def leads(self, group: str) -> bool:
        """Return whether this evaluator may publish numbers of a group."""
        return self._candidates[group].leads()

    def wait(self, timeout_s: float = 30.0) -> None:
        """Wait until every election is decided.

        Raises:
            PublishError: an election is not decided in time.
        """
        until = time.monotonic() + timeout_s
        for group, one in self._candidates.items():
            if not one.decided.wait(max(0.0, until - time.monotonic())):
                raise PublishError(
                    f"group {one.name!r}, which elects the evaluator for {group!r}, is not joined after "
                    f"{timeout_s:g} s: {one.problem or 'no answer of its coordinator'}"
                )

    def close(self) -> None:
        """Leave the groups, so that another evaluator leads immediately."""
        self._ended.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            for one in self._candidates.values():
                one.poll(_POLL_S / len(self._candidates))
        for one in self._candidates.values():
            one.close()


class _Candidate:
    """The membership in one election."""

    def __init__(self, kafka: Mapping[str, Any], topic: str, group: str) -> None:
        self.name = f"{topic}.evaluator.{group}"
        self.decided = threading.Event()
        self.problem = ""
        self._group = group
        self._elected = False
        self._polled = time.monotonic()
        self._consumer = made(
            Consumer,
            {
                **kafka,
                "group.id": self.name,
                "session.timeout.ms": int(_SESSION_S * 1000),
                "heartbeat.interval.ms": 1000,
                "partition.assignment.strategy": "range",
                "enable.auto.commit": False,
                "log_level": 2,
            },
            client="autoscale",
            refusal=ScalingFileError,
        )
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def leads(self) -> bool:
        # A process that was stopped may have lost its session without notice.
        return self._elected and time.monotonic() - self._polled < _SESSION_S / 2

    def poll(self, timeout_s: float) -> None:
        try:
            message = self._consumer.poll(timeout_s)
        except (KafkaException, RuntimeError) as failure:
            # The other elections go on, and this one with the next poll; it does not lead before.
            if self.problem != str(failure):
                _log.warning(
                    "the election's consumer failed, it is asked again", group=self._group, reason=str(failure)
                )
            self.problem = str(failure)
            return
        self._polled = time.monotonic()
        if message is not None and (error := message.error()) is not None:
            self.problem = error.str()

    def close(self) -> None:
        self._elected = False
        self._consumer.close()

    def _assigned(self, consumer: Consumer, partitions: Sequence[KafkaPartition]) -> None:
        consumer.assign([KafkaPartition(one.topic, one.partition, OFFSET_END) for one in partitions])
        self._set(any(one.partition == 0 for one in partitions))
        self.decided.set()

    def _revoked(self, consumer: Consumer, _: Sequence[KafkaPartition]) -> None:
        try:
            consumer.unassign()
        except KafkaException as error:
            _log.debug("not unassigned", group=self.name, reason=str(error))
        self._elected = False

    def _set(self, elected: bool) -> None:  # noqa: FBT001 -- the one value that it sets
        if elected != self._elected or not self.decided.is_set():
            text = "this evaluator publishes" if elected else "another evaluator publishes, this one stands by"
            _log.info(text, group=self._group)
        self._elected = elected
