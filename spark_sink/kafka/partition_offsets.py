"""Offsets of logs and of the group, without a membership, in one request per broker instead of one per partition."""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from assignors import MembershipError
from spark_sink.errors import FetchError, JoinError, OptionError
from spark_sink.kafka.client_property_names import kafka_python_config, librdkafka_config
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import TopicPartition

if TYPE_CHECKING:
    from assignors.clients import LogOffsets

_log = structlog.get_logger("azimuth.source")
_TIMEOUT_S = 10.0
# Every trigger requests ends: one partition without a leader must not delay all others for long.
_ENDS_TIMEOUT_S = 2.0
# Kafka's class Topic lists them. A group leaves them out of a pattern, so no member would ever read them.
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
Offset = TypeVar("Offset", int, int | None)


class PartitionOffsets:
    """Ends, beginnings and times of logs, and the group's committed offsets.

    Contract:
    * Answers leave out a partition without a leader (one is being elected, or the topic was just deleted).
    * Ends depend on the isolation level: with read_committed (librdkafka's default) they are before any open
      transaction.

    Raises:
        OptionError: librdkafka refuses a client property.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._librdkafka = {
            key: value
            for key, value in librdkafka_config(options.kafka).items()
            if key not in {"group.id", "isolation.level"}
        }
        try:
            self._admin = AdminClient(self._librdkafka)
        except KafkaException as error:
            said = error.args[0].str().strip()
            raise OptionError(f"a client property (kafka.*) is refused: {said}") from error
        self._logs: LogOffsets | None = None
        self._ahead: Thread | None = None

    def ends(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the exclusive end of the readable part of each log."""
        return self._answered(list(keys), lambda logs, asked: logs.ends(asked, _ENDS_TIMEOUT_S))

    def beginnings(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""
        return self._answered(list(keys), lambda logs, asked: logs.beginnings(asked, _TIMEOUT_S))

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time; None if all records are earlier."""
        return self._answered(list(times_ms), lambda logs, _: logs.at_times(dict(times_ms.items()), _TIMEOUT_S))

    def committed(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets of the group; partitions without one are left out.

        Raises:
            FetchError: the group's coordinator did not answer.
        """
        try:
            found = self._asked().committed(keys, 3 * _TIMEOUT_S)
        except MembershipError as error:
            raise FetchError(f"the offsets of group {self._options.group!r} could not be read: {error}") from error
        return {TopicPartition(*key): offset for key, offset in found.items()}

    def subscribed(self) -> set[TopicPartition]:
        """Return every partition of the subscribed topics; a pattern selects none of Kafka's internal topics.

        Raises:
            FetchError: no broker answered.
        """
        try:
            topics = self._admin.list_topics(timeout=3 * _TIMEOUT_S).topics
        except KafkaException as error:
            raise FetchError(f"the topics could not be listed: {error}") from error
        return self._subscribed(topics)

    def _subscribed(self, topics: Mapping[str, Any]) -> set[TopicPartition]:
        if self._options.pattern:
            wanted = {one for one in topics if re.fullmatch(self._options.pattern, one)} - _INTERNAL
        else:
            wanted = topics.keys() & set(self._options.topics)
        return {TopicPartition(name, n) for name in wanted for n in topics[name].partitions}

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """Return `<cluster id>/<topic id>` of topics (KIP-516); topics without an answer are left out."""
        try:
            return self._asked().topic_ids(sorted(set(topics)), _TIMEOUT_S)
        except MembershipError as error:
            _log.warning("topic ids are unknown for now", reason=str(error))
            return {}

    def check_rights(self, topics: Iterable[str]) -> None:
        """Check that this user may describe each topic: without that right a topic looks as if it did not exist.

        One request for all topics.

        Raises:
            JoinError: the brokers refuse a topic to this user.
        """
        names = sorted(set(topics))
        if not names:
            return
        for topic, answer in self._admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_S).items():
            error = answer.exception()
            # No answer is not a refusal, and a topic may be created later.
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise JoinError(f"topic {topic!r} is refused to this user: allow it DESCRIBE and READ there")

    def connect_ahead(self) -> None:
        """Connect to the coordinator and the leaders in a thread, while the caller waits for something else.

        The first answer to each question takes ten times as long as later ones.
        """
        if self._logs is None and self._ahead is None:
            self._ahead = Thread(target=self._connect, name="log-offsets", daemon=True)
            self._ahead.start()

    def _connect(self) -> None:
        # If the connection fails, the first question connects again, and its caller gets the error.
        with contextlib.suppress(MembershipError, KafkaException):
            self._logs = logs = self._open_logs()
            topics = self._subscribed(self._admin.list_topics(timeout=_ENDS_TIMEOUT_S).topics)
            logs.ends(sorted(topics), _ENDS_TIMEOUT_S)
            logs.committed(sorted(topics)[:1], _ENDS_TIMEOUT_S)

    def close(self) -> None:
        """Close the connections."""
        self._wait_connected()
        if self._logs is not None:
            self._logs.close()
            self._logs = None

    def _asked(self) -> "LogOffsets":
        self._wait_connected()
        if self._logs is None:
            self._logs = self._open_logs()
        return self._logs

    def _wait_connected(self) -> None:
        if self._ahead is not None:
            self._ahead.join()
            self._ahead = None

    def _open_logs(self) -> "LogOffsets":
        from assignors.clients import LogOffsets  # noqa: PLC0415 -- kafka-python, which no task needs

        settings = kafka_python_config(self._options.kafka)
        return LogOffsets.connect({"isolation_level": "read_committed", **settings, "group_id": self._options.group})

    def _answered(
        self,
        keys: Sequence[TopicPartition],
        ask: "Callable[[LogOffsets, Sequence[TopicPartition]], Mapping[tuple[str, int], Offset]]",
    ) -> dict[TopicPartition, Offset]:
        if not keys:
            return {}
        try:
            found = ask(self._asked(), keys)
        except MembershipError as error:
            _log.warning("offsets are unknown for now", partitions=len(keys), reason=str(error))
            return {}
        missing = [key for key in keys if key not in found]
        if missing:
            first = f"{missing[0].topic}/{missing[0].partition}"
            _log.warning("offsets are unknown for now", partitions=len(missing), first=first)
        return {TopicPartition(*key): offset for key, offset in found.items()}
