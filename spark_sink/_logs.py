"""Questions about logs and the group's offsets: no membership needed, one request a broker and not one a partition."""

import contextlib
import re
from collections.abc import Iterable, Mapping

import structlog
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # its stub has no __all__

from spark_sink._clients import librdkafka_config
from spark_sink._errors import FetchError, JoinError
from spark_sink._offsets import TopicPartition
from spark_sink._options import SourceOptions

_log = structlog.get_logger("azimuth.source")
_TIMEOUT_S = 10.0
# Asked for at every trigger: one partition without a leader must not hold back all the others for long.
_ENDS_TIMEOUT_S = 2.0
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # half typed
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # half typed


class Logs:
    """Ends, beginnings and times of logs, and what the group has committed.

    Contract:
    * A partition that cannot be answered now (its leader is being elected, its topic was just deleted) is left out.
    * Ends are those of the isolation level: with read_committed (the default, as librdkafka has it) they lie before
      any open transaction.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        config = librdkafka_config(options.kafka)
        self._isolation = (
            IsolationLevel.READ_UNCOMMITTED
            if config.pop("isolation.level", "") == "read_uncommitted"
            else IsolationLevel.READ_COMMITTED
        )
        self._librdkafka = {key: value for key, value in config.items() if key != "group.id"}
        self._admin = AdminClient(self._librdkafka)

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The exclusive end of each log that may be read."""
        return {key: at for key, at in self._offsets(dict.fromkeys(keys, _LATEST), _ENDS_TIMEOUT_S).items() if at >= 0}

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        return {key: at for key, at in self._offsets(dict.fromkeys(keys, _EARLIEST)).items() if at >= 0}

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time; None where no record is so late."""
        found = self._offsets({key: OffsetSpec.for_timestamp(time) for key, time in times_ms.items()})
        return {key: at if at >= 0 else None for key, at in found.items()}

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets of the group; partitions without one are left out.

        Raises:
            FetchError: the group's coordinator did not answer.
        """
        group = self._options.group
        asked = ConsumerGroupTopicPartitions(group, [KafkaPartition(*key) for key in keys])
        if not asked.topic_partitions:
            return {}
        try:
            (future,) = self._admin.list_consumer_group_offsets([asked], request_timeout=3 * _TIMEOUT_S).values()
            answer = future.result().topic_partitions
        except KafkaException as error:
            raise FetchError(f"the offsets of group {group!r} could not be read: {error}") from error
        return {TopicPartition(one.topic, one.partition): one.offset for one in answer if one.offset >= 0}

    def subscribed(self) -> set[TopicPartition]:
        """Every partition of the topics subscribed to.

        Raises:
            FetchError: no broker answered.
        """
        try:
            topics = self._admin.list_topics(timeout=3 * _TIMEOUT_S).topics
        except KafkaException as error:
            raise FetchError(f"the topics could not be listed: {error}") from error
        pattern = self._options.pattern
        wanted = re.compile(pattern).fullmatch if pattern else set(self._options.topics).__contains__
        return {TopicPartition(name, n) for name, topic in topics.items() if wanted(name) for n in topic.partitions}

    def check_rights(self, topics: Iterable[str]) -> None:
        """See that each topic may be described: one that may not looks like one that is not there yet.

        Raises:
            JoinError: the brokers refuse a topic to this user.
        """
        for topic in topics:
            with contextlib.suppress(KafkaException):  # who does not answer refuses nothing
                error = self._admin.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error
                if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise JoinError(f"topic {topic!r} is refused to this user: allow it DESCRIBE and READ there")

    def _offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], timeout_s: float = _TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        if not specs:
            return {}
        asked = {KafkaPartition(*key): spec for key, spec in specs.items()}
        futures = self._admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=timeout_s)
        found: dict[TopicPartition, int] = {}
        unknown: dict[str, str] = {}
        for partition, future in futures.items():
            try:
                found[TopicPartition(partition.topic, partition.partition)] = future.result().offset
            except KafkaException as error:
                unknown[f"{partition.topic}/{partition.partition}"] = str(error)
        if unknown:
            name, reason = next(iter(unknown.items()))
            _log.warning("offsets are unknown for now", partitions=len(unknown), first=name, reason=reason)
            # librdkafka asks with the leader epoch that it knows, and after a failover would be fenced for ever.
            self._admin = AdminClient(self._librdkafka)
        return found
