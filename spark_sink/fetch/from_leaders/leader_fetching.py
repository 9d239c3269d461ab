"""Reads the ranges of a task from the leaders of their partitions, as far as nothing unexpected happens."""

import selectors
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import structlog

from assignors.clients import Received
from spark_sink.fetch.from_leaders.known_leaders import KnownLeaders
from spark_sink.fetch.from_leaders.leader_connection import LeaderConnection, ResponseBuffer
from spark_sink.fetch.from_leaders.metadata_format import Leaders, metadata_request, parse_metadata
from spark_sink.fetch.from_leaders.plain_properties import Address, bootstrap_addresses, bootstrap_order, read_committed
from spark_sink.fetch.from_leaders.response_records import ResponseRecords
from spark_sink.fetch.from_leaders.wire_format import (
    Answered,
    Wanted,
    WireError,
    fetch_request,
    parse_fetch,
)
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


@dataclass(slots=True)
class _Broker:
    """A broker of a task.

    Attributes:
        number: its id.
        address: host and port.
        keys: the partitions that are read from it, in the order of the next request.
        connection: None before the first request.
        alive: whether the connection is new, or has brought an answer to this task.
        asked: whether a request has no answer yet.
        empty: answers in a row without a record.
        read: partitions of which it has sent records.
    """

    number: int
    address: Address
    keys: deque[TopicPartition] = field(default_factory=deque)
    connection: LeaderConnection | None = None
    alive: bool = False
    asked: bool = False
    empty: int = 0
    read: set[TopicPartition] = field(default_factory=set)


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
        self._rack = str(properties.get("client.rack", ""))
        self._committed = read_committed(properties)
        self._bootstrap = bootstrap_addresses(properties)
        self._response_bytes = min(_RESPONSE_BYTES, _size(properties, "fetch.max.bytes"))
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
        self._brokers: dict[int, _Broker] = {}
        self.known = known or KnownLeaders()
        self._identities = identities or {}
        self.whole = False

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
        """Return topics with the ids (KIP-516) that they have now for each broker that their records came from.

        A broker knows the ids of its own logs, also if it is cut off from the others, so no other one is asked. Topics
        that are unknown now, or had no id in the plan, are left out.

        Raises:
            OSError: a broker does not answer, or is older than 2.8.
            WireError: a response is not as expected.
        """
        asked: list[tuple[_Broker, LeaderConnection]] = []
        for broker in self._brokers.values():
            topics = sorted({key.topic for key in broker.read if self._identities.get(key.topic)})
            if topics and broker.connection is not None:
                number = broker.connection.next_number()
                broker.connection.send(metadata_request(number, self._client, topics, ids=True))
                asked.append((broker, broker.connection))
        found: set[tuple[str, str]] = set()
        for broker, connection in asked:
            said = parse_metadata(connection.receive(self._buffer), ids=True)
            self.known.confirm(broker.number, broker.read, said)
            found |= set(said.ids.items())
        return found

    def _find_leaders(self) -> None:
        keys = [one.key for one in self._progress.left]
        leaders = {key: self.known.leader(key, self._identities.get(key.topic, "")) for key in keys}
        if None in leaders.values():
            found = self._metadata(sorted({key.topic for key in keys}))
            leaders = {key: found.leaders.get(key) for key in keys}
            self._brokers = {number: _Broker(number, address) for number, address in found.brokers.items()}
        else:
            known = sorted({one for one in leaders.values() if one is not None})
            self._brokers = {number: _Broker(number, self.known.address(number)) for number in known}
        for key, leader in leaders.items():
            if leader is not None:
                self._brokers[leader].keys.append(key)

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
                broker.connection.send(self._request(broker.connection.next_number(), wanted))
            except OSError as error:  # not raised: batches that were taken before are still to be yielded
                _log.debug("a broker is lost, librdkafka reads its ranges", broker=broker.number, reason=str(error))
                broker.keys.clear()
                continue
            broker.asked = True
            ready.register(broker.connection, selectors.EVENT_READ, broker)

    def _wait_s(self) -> float:
        """Longest wait: shorter for a connection of an earlier task, whose broker may have been lost since."""
        return _TIMEOUT_S if all(one.alive for one in self._brokers.values() if one.asked) else _KEPT_WAIT_S

    def _request(self, number: int, wanted: list[Wanted]) -> bytes:
        return fetch_request(
            number,
            self._client,
            wanted,
            wait_ms=_WAIT_MS,
            most=self._response_bytes,
            committed=self._committed,
            rack=self._rack,
        )

    def _wanted(self, broker: _Broker) -> list[Wanted]:
        broker.keys = deque(key for key in broker.keys if key in self._progress)
        return [self._asked(key, *self._progress.bounds(key)) for key in broker.keys]

    def _asked(self, key: TopicPartition, begin: int, end: int) -> Wanted:
        size = max(_SMALLEST, (end - begin) * _RECORD_BYTES)
        return Wanted(key, begin, min(size, self._partition_bytes))

    def _take(self, broker: _Broker) -> list[pa.RecordBatch]:
        """Receive a response and advance the progress; a partition with anything unexpected is left to librdkafka."""
        assert broker.connection is not None  # noqa: S101 -- it has a request
        response = broker.connection.receive(self._buffer)
        broker.asked, broker.alive = False, True
        wanted = [(one, self._progress.bounds(one.key)) for one in self._expected(broker, parse_fetch(response))]
        records = ResponseRecords(response, wanted)
        batches = list(records.batches(self._schema, self._batch_bytes))
        self._advance(broker, records)
        return batches

    def _expected(self, broker: _Broker, answers: Iterable[Answered]) -> Iterator[Answered]:
        """Yield the partitions with records to decode; the others are read elsewhere from now on."""
        asked = set(broker.keys)
        for one in answers:
            if one.key not in asked:
                raise WireError(f"the broker answers for {one.key}, which was not asked")
            asked.remove(one.key)
            if one.error or one.aborted:
                broker.keys.remove(one.key)
            elif one.size:
                yield one
            elif one.replica in self._brokers.keys() - {broker.number}:  # KIP-392: it is closer
                broker.keys.remove(one.key)
                self._brokers[one.replica].keys.append(one.key)

    def _advance(self, broker: _Broker, records: ResponseRecords) -> None:
        any_moved = False
        for one in records.read:
            moved = one.position > self._progress.bounds(one.key)[0]
            any_moved |= moved
            if moved:
                broker.read.add(one.key)
            if moved or not one.whole:
                broker.keys.remove(one.key)
            if moved and one.whole:
                broker.keys.append(one.key)  # the first of a request gets a whole batch, however large
            part = records.records[one.first : one.last]
            fresh = Received(len(part), int(part["key_bytes"].sum() + part["value_bytes"].sum()))
            cell = one.key.topic, broker.number
            self._received[cell] = self._received.get(cell, Received()).plus(fresh)
            self._progress.advance(one.key, one.position)
        broker.empty = 0 if any_moved else broker.empty + 1
        if broker.empty >= _PATIENCE:
            raise WireError(f"broker {broker.number} has none of the records")


def _answering(ready: selectors.BaseSelector, wait_s: float) -> Iterator[_Broker]:
    """Wait for responses; yield their brokers, which are waited for no more.

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
