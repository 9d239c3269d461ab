"""Reads the ranges of a task from the leaders of their partitions, as far as nothing unexpected happens."""

import selectors
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
import structlog
from confluent_kafka import KafkaError

from assignors.clients import Received
from spark_sink.fetch.from_leaders.fetch_format import Answered, Wanted, ids_in_bytes
from spark_sink.fetch.from_leaders.known_leaders import KnownLeaders
from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection, ResponseBuffer
from spark_sink.fetch.from_leaders.metadata_format import Leaders, metadata_request, parse_metadata
from spark_sink.fetch.from_leaders.plain_properties import Address, bootstrap_addresses, bootstrap_order, read_committed
from spark_sink.fetch.from_leaders.response_records import ResponseRecords
from spark_sink.fetch.from_leaders.task_broker import FetchLimits, TaskBroker
from spark_sink.fetch.from_leaders.wire_format import WireError
from spark_sink.fetch.received_files import Counts
from spark_sink.ranges.batch_offset import TopicPartition
from spark_sink.ranges.range_completion import TaskProgress

_log = structlog.get_logger("azimuth.source")
_TIMEOUT_S: Final = 5.0
_KEPT_WAIT_S: Final = 2.0
_WAIT_MS: Final = 100
_RESPONSE_BYTES: Final = 8 << 20
_PARTITION_BYTES: Final = 2 << 20
_SMALLEST: Final = 64 << 10
_RECORD_BYTES: Final = 1_000  # an estimate, used only for the size of a request
_PATIENCE: Final = 10  # responses in a row without a record, each after the broker's longest wait
_failed: dict[Address, float] = {}  # bootstrap servers that did not answer a task of this process, and when

_OTHER_ID: Final = frozenset({KafkaError.UNKNOWN_TOPIC_ID, KafkaError.INCONSISTENT_TOPIC_ID})
# Of one partition: it has another leader, another epoch than was known, or is no longer on the broker.
_MOVED: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


class LeaderFetching:
    """One pass through the ranges of a task.

    Args:
        properties: librdkafka's properties, which `plain` accepts.
        progress: the ranges; it advances before batches are yielded.
        schema: of `arrow_schema`.
        batch_bytes: close a batch when its keys and values pass this size.
        received: records and bytes by topic and broker; changed in place.
        known: what an earlier task has left.
        identities: ids of topics at the time when the ranges were planned, without those that were not known.

    Attributes:
        known: what this task leaves, if `whole`.
        whole: whether all ranges are read, and each answer was as expected.
        refused_id: whether a broker does not know a topic's id: it is new, or was deleted and perhaps recreated.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- a task's parts, each named in the docstring
        self,
        properties: Mapping[str, object],
        progress: TaskProgress,
        schema: pa.Schema,
        batch_bytes: int,
        received: Counts,
        known: KnownLeaders | None = None,
        identities: Mapping[str, str] | None = None,
    ) -> None:
        self._client = str(properties.get("client.id", "rdkafka"))
        self._limits = FetchLimits(
            client=self._client,
            rack=str(properties.get("client.rack", "")),
            committed=read_committed(properties),
            wait_ms=_WAIT_MS,
            most=min(_RESPONSE_BYTES, _size(properties, "fetch.max.bytes")),
        )
        self._bootstrap = bootstrap_addresses(properties)
        self._partition_bytes = min(
            _PARTITION_BYTES,
            _size(properties, "fetch.message.max.bytes"),
            _size(properties, "max.partition.fetch.bytes"),
        )
        self._progress = progress
        self._schema = schema
        self._batch_bytes = batch_bytes
        self._received = received
        self._buffer = ResponseBuffer()
        self._brokers: dict[int, TaskBroker] = {}
        self.known = known or KnownLeaders()
        self._identities = identities or {}
        self._ids = ids_in_bytes(self._identities)
        self._leads: dict[TopicPartition, tuple[int, int]] = {}  # broker and epoch
        self._asked_again: set[TopicPartition] = set()
        self.whole = False
        self.refused_id = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield record batches until the ranges are read; what is then left in `progress` is for librdkafka."""
        try:
            with selectors.DefaultSelector() as ready:
                self._find_leaders()
                self._ask(ready)
                while ready.get_map():
                    for broker in _answering(ready, self._wait_s()):
                        batches = self._take(broker)
                        self._ask(ready)  # the broker works while the batches are used
                        yield from batches
            self.whole = not self._progress
        except (OSError, WireError) as error:
            _log.debug("librdkafka reads the rest of a task", reason=str(error), ranges=len(self._progress.left))
        finally:
            if not self.whole:
                self.known.close()

    def topic_ids(self) -> set[tuple[str, str]]:
        """Return topics with their ids (KIP-516), as each broker that their records came from has them.

        Topics that were read by id have this id. For the others each broker is asked for the ids that it has now: it
        knows those of its own logs, even if it is cut off from other brokers. Topics that are unknown now, or had no id
        in the plan, are left out.

        Raises:
            OSError: a broker does not answer, or is older than 2.8.
            WireError: a response is not as expected.
        """
        asked = {
            broker.number: broker.ask_metadata(self._client, self._identities) for broker in self._brokers.values()
        }
        found: set[tuple[str, str]] = set()
        for broker in self._brokers.values():
            by_id = broker.read - broker.read_by_name
            found |= {(key.topic, self._identities[key.topic]) for key in by_id}
            self.known.confirm(broker.number, by_id, self._as_planned(by_id))
            if (connection := asked[broker.number]) is not None:
                said = parse_metadata(connection.receive(self._buffer), ids=True)
                self.known.confirm(broker.number, broker.read_by_name, said)
                found |= set(said.ids.items())
        return found

    def _as_planned(self, read: Collection[TopicPartition]) -> Leaders:
        """Return the leaders of these partitions with the ids and epochs that their brokers have accepted."""
        leads = {key: self._leads[key] for key in read}
        return Leaders(
            {},
            {key: broker for key, (broker, _) in leads.items()},
            {key.topic: self._identities[key.topic] for key in read},
            {key: epoch for key, (_, epoch) in leads.items()},
        )

    def _find_leaders(self) -> None:
        keys = [one.key for one in self._progress.left]
        known = [self.known.lead(key, self._identities.get(key.topic, "")) for key in keys]
        if None in known:
            self._take_leaders(keys, self._metadata(sorted({key.topic for key in keys})))
            return
        self._leads = {key: (one.broker, one.epoch) for key, one in zip(keys, known, strict=True) if one is not None}
        for key, (number, _) in self._leads.items():
            self._broker(number, self.known.address(number)).keys.append(key)

    def _take_leaders(self, keys: Collection[TopicPartition], found: Leaders) -> None:
        """Read these partitions from their leaders; those without one are left to librdkafka."""
        for number, address in found.brokers.items():
            self._broker(number, address)
        for key in keys:
            if (leader := found.leaders.get(key)) is not None:
                self._leads[key] = leader, found.epochs.get(key, -1)
                self._brokers[leader].keys.append(key)

    def _broker(self, number: int, address: Address) -> TaskBroker:
        return self._brokers.setdefault(number, TaskBroker(number, address))

    def _metadata(self, topics: list[str]) -> Leaders:
        reasons: list[str] = []  # not the errors: they refer to this frame, which would keep the buffer
        for address in bootstrap_order(self._bootstrap, _failed):
            try:
                with LeaderConnection(address, _TIMEOUT_S) as connection:
                    connection.send(metadata_request(connection.next_number(), self._client, topics))
                    found = parse_metadata(connection.receive(self._buffer))
            except OSError as error:
                _failed[address] = time.monotonic()
                reasons.append(str(error))
            else:
                _failed.pop(address, None)
                return found
        raise ConnectionRefusedError(f"no bootstrap server answers: {reasons}")

    def _ask(self, ready: selectors.BaseSelector) -> None:
        """Send a request to each broker that has none to answer, and partitions that are not read to the end."""
        for broker in self._brokers.values():
            wanted = [] if broker.asked else self._wanted(broker)
            if not wanted:
                continue
            try:
                if broker.connection is None:
                    broker.connection = self.known.connect(broker.number, broker.address, _TIMEOUT_S)
                    broker.alive = broker.connection.is_new
                broker.ask(broker.connection, wanted, self._ids, self._limits)
            except OSError as error:  # not raised: batches that were taken before are still to be yielded
                _log.debug("a broker is lost, librdkafka reads its ranges", broker=broker.number, reason=str(error))
                broker.keys.clear()
                continue
            ready.register(broker.connection, selectors.EVENT_READ, broker)

    def _wait_s(self) -> float:
        """Longest wait: shorter for a connection of an earlier task, whose broker may have been lost since."""
        return _TIMEOUT_S if all(one.alive for one in self._brokers.values() if one.asked) else _KEPT_WAIT_S

    def _wanted(self, broker: TaskBroker) -> list[Wanted]:
        broker.keys = deque(key for key in broker.keys if key in self._progress)
        return [self._asked(key, *self._progress.bounds(key)) for key in broker.keys]

    def _asked(self, key: TopicPartition, begin: int, end: int) -> Wanted:
        size = max(_SMALLEST, (end - begin) * _RECORD_BYTES)
        return Wanted(key, begin, min(size, self._partition_bytes), self._leads[key][1])

    def _take(self, broker: TaskBroker) -> list[pa.RecordBatch]:
        """Receive a response and advance the progress; a partition with anything unexpected is left to librdkafka."""
        assert broker.connection is not None  # noqa: S101 -- it has a request
        response = broker.connection.receive(self._buffer)
        answers = broker.take(response)
        if answers is None:
            return []
        self.refused_id |= any(one.error in _OTHER_ID for one in answers)
        moved = [one.key for one in answers if one.error in _MOVED]
        wanted = [(one, self._progress.bounds(one.key)) for one in self._expected(broker, answers)]
        records = ResponseRecords(response, wanted)
        batches = list(records.batches(self._schema, self._batch_bytes))
        self._advance(broker, records)
        self._find_moved(broker, broker.connection, moved)
        return batches

    def _expected(self, broker: TaskBroker, answers: Iterable[Answered]) -> Iterator[Answered]:
        """Yield the partitions with records to decode; the others are read elsewhere from now on."""
        for one in answers:
            if one.error or one.aborted:
                broker.keys.remove(one.key)
            elif one.size:
                yield one
            elif one.replica in self._brokers.keys() - {broker.number}:  # KIP-392: it is closer
                broker.keys.remove(one.key)
                self._brokers[one.replica].keys.append(one.key)

    def _find_moved(self, broker: TaskBroker, connection: LeaderConnection, moved: Collection[TopicPartition]) -> None:
        """Ask the broker that refused these partitions for their leaders, once in a task for each partition."""
        again = set(moved) - self._asked_again
        if not again:
            return
        self._asked_again |= again
        topics = sorted({key.topic for key in again})
        try:
            connection.send(metadata_request(connection.next_number(), self._client, topics))
            self._take_leaders(again, parse_metadata(connection.receive(ResponseBuffer())))
        except (OSError, WireError) as error:  # not raised: batches that were taken before are still to be yielded
            _log.debug("a broker is lost, librdkafka reads its ranges", broker=broker.number, reason=str(error))
            broker.keys.clear()

    def _advance(self, broker: TaskBroker, records: ResponseRecords) -> None:
        any_moved = False
        for one, size in zip(records.read, records.sizes(), strict=True):
            moved = one.position > self._progress.bounds(one.key)[0]
            any_moved |= moved
            if moved:
                broker.note_read(one.key)
            if moved or not one.whole:
                broker.keys.remove(one.key)
            if moved and one.whole:
                broker.keys.append(one.key)  # the first of a request gets a whole batch, however large
            fresh = Received(one.last - one.first, size)
            cell = one.key.topic, broker.number
            self._received[cell] = self._received.get(cell, Received()).plus(fresh)
            self._progress.advance(one.key, one.position)
        broker.empty = 0 if any_moved else broker.empty + 1
        if broker.empty >= _PATIENCE:
            raise WireError(f"broker {broker.number} has none of the records")


def _answering(ready: selectors.BaseSelector, wait_s: float) -> Iterator[TaskBroker]:
    """Wait for responses; yield their brokers, and stop waiting for them.

    Raises:
        TimeoutError: there is none.
    """
    events = ready.select(wait_s)
    if not events:
        raise TimeoutError("no broker answers")
    for event, _mask in events:
        ready.unregister(event.fileobj)
        yield event.data


def _size(properties: Mapping[str, object], name: str) -> int:
    return max(int(str(properties.get(name, _RESPONSE_BYTES))), 1)
