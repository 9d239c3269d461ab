"""The lag source over Kafka: a handful of requests for all topics of a group, not one per partition."""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub has no __all__
    AdminClient,
    ConfigResource,
    ResourceType,
)

from assignors.clients.client_creation import made
from assignors.clients.kafka_python_names import kafka_python_settings
from assignors.clients.log_offsets import LogOffsets
from assignors.clients.silent_brokers import admin_properties, leaving_silent_brokers, list_cluster
from assignors.clients.unreachable_causes import why_unreachable
from assignors.errors import LagError, MembershipError, ScalingFileError
from assignors.fleet.lanes import lane_groups
from assignors.scaling.observation import NEVER, UNKNOWN, Observation

_log = structlog.get_logger("azimuth.scaling")
_TIMEOUT_S = 10.0
_ANSWER_S = 5.0
_LEAST_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """The properties of a topic that rarely change.

    Attributes:
        partitions: number of partitions.
        retention_s: age at which records are deleted; None if retention is unlimited or the topic is only compacted.
    """

    partitions: int
    retention_s: float | None


class LagSource(Protocol):
    """Observes the ends of logs and the positions of a group.

    Contract:
    * An offset that cannot be read now is `UNKNOWN` in the observation, never an older value. One broker that is silent
      makes only those unknown that it alone has.
    * The group of a fleet stands for the groups of its lanes: the highest of their commits counts.
    * Deleted topics are left out. Called by one thread; may block for some seconds.
    """

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        ...

    def topics(self, names: Collection[str], pattern: str | None) -> dict[str, TopicFacts]:
        """Return the topics of these names, and those whose whole name matches the pattern."""
        ...

    def observe(self, group: str, topics: Mapping[str, TopicFacts]) -> dict[str, Observation]:
        """Return one observation of each topic."""
        ...


class KafkaLag:
    """`LagSource` by Kafka clients: ends, beginnings and the group's offsets take one request per broker each."""

    def __init__(self, kafka: Mapping[str, Any]) -> None:
        """Prepare; connects at the first request.

        Args:
            kafka: librdkafka's properties, at least `bootstrap.servers`.

        Raises:
            ScalingFileError: a property is invalid.
        """
        self._config = {"log_level": 2, **leaving_silent_brokers(kafka)}
        self._admin = made(AdminClient, admin_properties(self._config), client="autoscale", refusal=ScalingFileError)
        self._logs: dict[str, LogOffsets] = {}
        self._retention_s: dict[str, float | None] = {}
        self._known_lanes: dict[str, list[str]] = {}
        self._holders: dict[str, dict[tuple[str, int], str]] = {}

    def cluster_id(self) -> str:
        """As in `LagSource`.

        Raises:
            LagError: no broker answers.
        """
        try:
            return str(list_cluster(self._admin, _ANSWER_S).cluster_id)
        except KafkaException as error:
            raise LagError(self._silent("the cluster's id", error)) from error

    def topics(self, names: Collection[str], pattern: str | None) -> dict[str, TopicFacts]:
        """As in `LagSource`.

        Raises:
            LagError: no broker answers.
        """
        matches = re.compile(pattern).fullmatch if pattern else (lambda _: None)
        try:
            known = list_cluster(self._admin, _ANSWER_S).topics
        except KafkaException as error:
            raise LagError(self._silent("the topics", error)) from error
        found = {
            name: len(topic.partitions)
            for name, topic in known.items()
            if not topic.error and topic.partitions and (name in names or matches(name))
        }
        self._retention_s = {name: kept for name, kept in self._retention_s.items() if name in known}
        retentions = self._retentions(found)
        return {name: TopicFacts(partitions=count, retention_s=retentions.get(name)) for name, count in found.items()}

    def observe(self, group: str, topics: Mapping[str, TopicFacts]) -> dict[str, Observation]:
        """As in `LagSource`."""
        keys = [(name, n) for name, facts in topics.items() for n in range(facts.partitions)]
        if not keys:
            return {}
        committed: dict[tuple[str, int], int] = {}
        ends: dict[tuple[str, int], int] = {}
        starts: dict[tuple[str, int], int] = {}
        try:
            # The group's offsets come first, so that an end, which is read later, is never below the group's offset.
            committed = self._committed(group, keys)
            logs = self._asked(group, _ANSWER_S)
            ends = logs.ends(keys, _ANSWER_S)
            starts = logs.beginnings(keys, _ANSWER_S)
        except MembershipError as error:
            _log.warning("offsets are unknown for now", group=group, reason=str(error))
        now_s = time.time()
        known = sum(offset != UNKNOWN for offset in committed.values())
        if (least := min(known, len(ends), len(starts))) < len(keys):
            _log.warning("offsets are unknown for now", partitions=len(keys) - least)
        return {
            name: Observation(
                time_s=now_s,
                start=_column(starts, name, facts.partitions),
                end=_column(ends, name, facts.partitions),
                committed=_column(committed, name, facts.partitions),
            )
            for name, facts in topics.items()
        }

    def _committed(self, group: str, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the highest commit of the group and of its lanes.

        A lane whose coordinator is silent makes the partitions unknown whose highest commit it had, and those that no
        other lane has: they may have one there.
        """
        found, holders = dict.fromkeys(keys, NEVER), dict[tuple[str, int], str]()
        lanes, whole = self._lanes(group)
        silent, until = set[str](), time.monotonic() + _TIMEOUT_S
        for one in [group, *lanes]:
            left_s = max(_LEAST_S, until - time.monotonic())
            try:
                committed = self._asked(one, left_s).committed(keys, left_s)
            except MembershipError as error:
                _log.warning("the commits of a group are unknown for now", group=one, reason=str(error))
                silent.add(one)
                continue
            for key, offset in committed.items():
                if offset > found[key]:
                    found[key], holders[key] = offset, one
        if whole and not silent:
            self._holders[group] = holders
            return found
        before = self._holders.get(group, {})
        answered = {group, *lanes} - silent
        return {key: offset if before.get(key) in answered else UNKNOWN for key, offset in found.items()}

    def _lanes(self, group: str) -> tuple[list[str], bool]:
        """Return the groups of the lanes, and whether all brokers have named theirs; else the known ones count, too."""
        try:
            listed = self._admin.list_consumer_groups(request_timeout=_ANSWER_S).result(_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            if group not in self._known_lanes:
                raise MembershipError(self._silent("the consumer groups", error)) from error
            return self._known_lanes[group], False
        lanes = lane_groups(group, (one.group_id for one in listed.valid))
        if listed.errors:
            return sorted({*lanes, *self._known_lanes.get(group, ())}), False
        self._known_lanes[group] = lanes
        return lanes, True

    def _asked(self, group: str, timeout_s: float) -> LogOffsets:
        if group not in self._logs:
            settings = {**kafka_python_settings(self._config), "isolation_level": "read_committed", "group_id": group}
            # With kafka-python's 30 s for each lane a round could take minutes.
            self._logs[group] = LogOffsets.connect(settings | {"bootstrap_timeout_ms": int(timeout_s * 1000)})
        return self._logs[group]

    def _retentions(self, names: Collection[str]) -> Mapping[str, float | None]:
        """Return the retention of topics, None for unlimited; what was known stays while it cannot be asked for.

        Librdkafka asks the controller, which may be away while all offsets are known. A retention that counted as
        unlimited for that time would let a policy take workers from a topic whose unread records are soon deleted.
        """
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        until, failed, reason = time.monotonic() + _ANSWER_S, list[str](), ""
        for resource, future in self._admin.describe_configs(resources).items() if resources else ():
            try:
                settings = future.result(max(until - time.monotonic(), 0.0))
            except (KafkaException, TimeoutError) as error:
                failed.append(resource.name)
                reason = str(error) or f"no answer in {_ANSWER_S:g} s"
                continue
            retention_ms = int(settings["retention.ms"].value or -1)
            limited = "delete" in (settings["cleanup.policy"].value or "") and retention_ms >= 0
            self._retention_s[resource.name] = retention_ms / 1000 if limited else None
        if failed:
            new = [name for name in failed if name not in self._retention_s]
            _log.warning(
                "retention cannot be asked for: the last known one counts, and unlimited for topics without one",
                topics=len(failed),
                unlimited=len(new),
                reason=reason,
            )
        return self._retention_s

    def _silent(self, what: str, error: Exception) -> str:
        reason = why_unreachable(self._config) or (error.args[0] if error.args else "no answer in time")
        return f"{self._config.get('bootstrap.servers')}: {what} cannot be asked for: {reason}"


def _column(offsets: Mapping[tuple[str, int], int], topic: str, partitions: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([offsets.get((topic, n), UNKNOWN) for n in range(partitions)], dtype=np.int64)
