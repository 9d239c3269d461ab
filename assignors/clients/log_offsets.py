# ruff: noqa: SLF001 - kafka-python answers one partition a call in public; many at once only inside
"""Offsets of logs and of a group, through kafka-python: one request per broker, for any number of partitions.

librdkafka's admin client is not used: if a broker dies during a request for offsets, it can end the process
(`rd_kafka_enq_once_del_source_return`: assertion `eonce->refcnt > 0`, seen with 2.16.0).
"""

import time
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest

from assignors.clients.kafka_python_creation import connected
from assignors.clients.kafka_python_names import CLIENT
from assignors.clients.silent_brokers import ANSWER_MS
from assignors.errors import MembershipError
from assignors.planner.topics_and_members import TopicPartition

_LATEST, _EARLIEST = -1, -2
_BACKOFF_S = 0.05


class OffsetWithMetadata(NamedTuple):
    """An offset that a group commits, with its metadata text, and the epoch of its leader (KIP-320), -1 if unknown."""

    offset: int
    metadata: str
    leader_epoch: int = -1

    @classmethod
    def of(cls, offset: "Offset") -> "OffsetWithMetadata":
        """Return the offset with its metadata, empty for a number alone."""
        return offset if isinstance(offset, OffsetWithMetadata) else cls(offset, "")


Offset = int | OffsetWithMetadata


class LogOffsets:
    """Requests over a consumer's connections; the consumer need not be a member of its group.

    Contract:
    * Any thread may call; a call waits for brokers, at most `timeout_s`.
    * Answers leave out partitions without an answer in that time: a leader is being elected, a topic was just deleted.
    """

    def __init__(self, consumer: Any) -> None:  # noqa: ANN401 - kafka-python is untyped
        self._consumer = consumer
        self._net = consumer._net
        self._manager = consumer._manager
        self._fetcher = consumer._fetcher
        self._coordinator = consumer._coordinator

    @classmethod
    def connect(cls, config: Mapping[str, Any]) -> Self:
        """Connect.

        Args:
            config: settings of kafka-python's consumer; `group_id` only for requests of the group's offsets.

        Raises:
            MembershipError: no broker answers, or a setting is wrong.
        """
        quiet = {"client_id": CLIENT, "allow_auto_create_topics": False, "metrics_enabled": False}
        # These answers are short: a broker without one is silent, and kafka-python would keep it for half a minute. It
        # never fetches, and refuses a wait for records that is longer than the one for an answer.
        answers = {"request_timeout_ms": ANSWER_MS, **config, "fetch_max_wait_ms": 1}
        settings = {**quiet, **answers, "enable_auto_commit": False}
        try:
            return cls(connected(KafkaConsumer, settings))
        except (KafkaError, ValueError, TypeError) as error:
            raise MembershipError(f"no offsets from {config.get('bootstrap_servers')}: {error!r}") from error

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close(autocommit=False)

    def committed(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """Return the offsets that the group has committed; partitions without one are left out.

        Raises:
            MembershipError: the coordinator did not answer in time, or refused.
        """
        return {key: at.offset for key, at in self.committed_with_metadata(partitions, timeout_s).items()}

    def committed_with_metadata(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, OffsetWithMetadata]:
        """Like `committed`, with the metadata of each offset; raises the same errors."""
        asked = [KafkaPartition(*key) for key in partitions]
        try:
            found = self._net.run(self._fetch_committed, asked, timeout_s * 1000)
        except KafkaError as error:
            raise MembershipError(f"the offsets of {len(asked)} partitions could not be read: {error!r}") from error
        return {
            (one.topic, one.partition): OffsetWithMetadata(at.offset, at.metadata or "", _epoch(at.leader_epoch))
            for one, at in found.items()
            if at.offset >= 0
        }

    async def _fetch_committed(self, asked: list[KafkaPartition], timeout_ms: float) -> Any:  # noqa: ANN401 -- kafka-python is untyped
        # kafka-python keeps a request whose caller did not wait until its end, and would return that answer here: since
        # then another member may have committed. Only the thread of the event loop may change what it keeps.
        self._coordinator._offset_fetch_futures.pop(frozenset(asked), None)
        return await self._coordinator.fetch_committed_offsets_async(asked, timeout_ms)

    def ends(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """Return the exclusive end of each log, for the isolation level."""
        return _present(self._at(dict.fromkeys(partitions, _LATEST), timeout_s))

    def beginnings(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""
        return _present(self._at(dict.fromkeys(partitions, _EARLIEST), timeout_s))

    def at_times(self, times_ms: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time; None if all records are earlier."""
        return self._at(times_ms, timeout_s)

    def topic_ids(self, topics: Iterable[str], timeout_s: float) -> dict[str, str]:
        """Return `<cluster id>/<topic id>` of topics (KIP-516), as librdkafka writes ids, without topics without an id.

        Raises:
            MembershipError: no broker answered in time.
        """
        try:
            return dict(self._net.run(self._topic_ids_async, list(topics), timeout_s))
        except KafkaError as error:
            raise MembershipError(f"the ids of topics could not be read: {error!r}") from error

    async def _topic_ids_async(self, topics: list[str], timeout_s: float) -> dict[str, str]:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = await self._manager.wait_for(self._manager.send(request), timeout_s * 1000)
        ids = {one.name: one.topic_id for one in answer.topics if not one.error_code and one.topic_id}
        return {
            name: f"{answer.cluster_id}/{b64encode(found.bytes).decode().rstrip('=')}"
            for name, found in ids.items()
            if found.int
        }

    def _at(self, times: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int | None]:
        asked = {KafkaPartition(*key): at for key, at in times.items()}
        found: dict[TopicPartition, int | None] = self._net.run(self._at_async, asked, time.monotonic() + timeout_s)
        return found

    async def _at_async(self, missing: dict[Any, int], until: float) -> dict[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        while missing:
            by_leader = self._fetcher._group_list_offset_requests(missing)
            sent = [
                self._manager.call_soon(self._fetcher._send_list_offsets_request, *one) for one in by_leader.items()
            ]
            for future, asked in zip(sent, by_leader.values(), strict=True):
                try:
                    offsets, again = await self._manager.wait_for(future, max(1.0, (until - time.monotonic()) * 1000))
                except KafkaError:
                    continue
                answered = {one: offsets.get(one) for one in asked if one not in again}
                found |= {(one.topic, one.partition): at and at.offset for one, at in answered.items()}
                missing = {one: at for one, at in missing.items() if one not in answered}
            if missing and time.monotonic() >= until:
                break
            if missing:
                self._manager.cluster.request_update()
                await self._net.sleep(_BACKOFF_S)
        return found


def _epoch(known: int | None) -> int:
    return -1 if known is None else known


def _present(found: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
    return {key: at for key, at in found.items() if at is not None}
