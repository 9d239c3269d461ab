"""Reading one source: a thread with a few consumers, and one that writes what they read into the tables."""

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from assignors.errors import AssignorError
from assignors.fleet import FleetTopic, Lane, lane_change
from spark_sink.errors import SparkSinkError, TableError
from spark_sink.fleet.lane import LaneConsumer, LaneParts
from spark_sink.fleet.lane_consumers import Consumers
from spark_sink.fleet.record_buffer import RecordBuffer
from spark_sink.fleet.table_refusals import RefusedTables
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.write_queue import BackgroundWriter, BatchWriter, ReadBatch, TopicIds
from spark_sink.ranges.batch_offset import Range, TopicPartition

log = logging.getLogger(__name__)

Assigned = Mapping[Lane, frozenset[FleetTopic]]

_EXPECTED = (SparkSinkError, AssignorError, KafkaException, OSError)
_WAIT_S = 0.05
_MOST = 5_000
_BUFFER_BYTES = 32 << 20
_PAUSE_S = 1.0
_PART = re.compile(r"part-[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """How a source is read.

    Attributes:
        group: consumer groups are `<group>.lane-<number>`, and tables keep the positions of `<group>`.
        kafka: librdkafka's properties, by source.
        flush_s: records are written into the table so often.
        include_headers: land the records' headers, too.
        buffer_bytes: memory of the records that are read ahead of the tables, for each source. As many again may be on
            their way into the tables.
    """

    group: str
    kafka: Mapping[str, Mapping[str, Any]]
    flush_s: float = 1.0
    include_headers: bool = False
    buffer_bytes: int = _BUFFER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderParts:
    """What a source's reader works with.

    Attributes:
        writer: of the source's tables.
        ids: asked for each batch of records.
        look_again: called when a topic seems to have been recreated.
    """

    writer: TableWriter
    ids: TopicIds
    look_again: Callable[[], None]


class SourceReader:
    """Reads the lanes of one source in a thread of its own; what came is written into the tables beside that.

    One batch is under way at a time. A rebalance stops all partitions of a lane until its callback has run, so the
    reading thread waits for the tables only where it must: before partitions go to another agent, and after an error.

    Args:
        source: name.
        settings: how.
        parts: what it works with.
    """

    def __init__(self, source: str, settings: ReaderSettings, parts: ReaderParts) -> None:
        self._source = source
        self._settings = settings
        self._parts = parts
        self._writer = parts.writer
        self._background = BackgroundWriter(f"fleet-write-{source}", BatchWriter(parts.writer, parts.ids))
        self._wanted: Assigned = {}
        self._applied: dict[Lane, frozenset[FleetTopic]] = {}
        self._consumers = Consumers()
        self._rows = RecordBuffer(include_headers=settings.include_headers)
        self._warned: set[str] = set()
        self._ended = threading.Event()
        self._problem = ""
        self._refusals = RefusedTables(source)
        self._deferred: Exception | None = None
        self.rows_written = 0
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name=f"fleet-read-{source}", daemon=True)
        self._thread.start()

    def assign(self, lanes: Assigned) -> None:
        """Read this from now on; returns at once."""
        self._wanted = dict(lanes)

    def problems(self) -> list[str]:
        """What does not go well now."""
        found = self._consumers.problems() + self._refusals.problems()
        if not self.alive:
            found.append(f"{self._source}: reading has ended by an error that nobody expected, the log has it: restart")
        return [*([self._problem] if self._problem else []), *sorted(set(found))]

    def lag(self) -> dict[str, int]:
        """Records behind, by topic."""
        return self._consumers.lag()

    def lag_s(self) -> dict[str, float]:
        """The age of the oldest unread record in seconds, by topic."""
        return self._consumers.lag_s()

    @property
    def alive(self) -> bool:
        """Whether it reads, or was told to end; it does not go on by itself where it was not."""
        return self._thread.is_alive() or self._ended.is_set()

    @property
    def works(self) -> bool:
        """Whether what comes is written: the thread lives, and the table refuses nothing."""
        return self.alive and not self._problem

    @property
    def rebalances(self) -> int:
        """How often partitions came or went."""
        return self._consumers.rebalances

    def received(self) -> dict[int, int]:
        """Bytes that came over the wire, by broker id."""
        return self._consumers.received()

    def tables(self) -> set[str]:
        """Addresses of the tables that it writes now."""
        return self._writer.addresses({topic.name for topics in list(self._applied.values()) for topic in topics})

    @property
    def consumers(self) -> int:
        """How many there are."""
        return len(self._consumers)

    def end(self) -> None:
        """Bring in what was read and leave the groups; `join` waits for it."""
        self._ended.set()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._try_again()
                self._change()
                self._fill()
                self._settle(wait=self._full)
                self._hand_over()
                if not self._background.busy:
                    self._problem = ""
            except _EXPECTED as error:
                self._fail(error)
        self._end()

    def _change(self) -> None:
        wanted = self._wanted
        change = lane_change(self._applied, wanted)
        for lane in change.stop:
            self._subscribe(lane, {})
            del self._applied[lane]
        new = {**change.start, **change.change}
        if not new:
            return
        self._release(new)
        labels = self._label([topic for topics in new.values() for topic in topics])
        for lane, topics in new.items():
            self._subscribe(lane, {topic: labels[topic] for topic in topics if topic in labels})
            self._applied[lane] = topics

    def _release(self, new: Assigned) -> None:
        """Topics that go to another lane leave their own one first, with what was read of them.

        Else one batch could hold records of a partition twice: from the consumer that had it, and from the one that
        begins where the table is.
        """
        lanes = {topic.identity: lane for lane, topics in self._applied.items() for topic in topics}
        pairs = [(topic.identity, lane) for lane, topics in new.items() for topic in topics]
        moving = {identity for identity, lane in pairs if lanes.get(identity, lane) != lane}
        for lane in {lanes[identity] for identity in moving}:
            kept = frozenset(topic for topic in self._applied[lane] if topic.identity not in moving)
            self._subscribe(lane, self._label(sorted(kept)))
            self._applied[lane] = kept
        if moving:
            self._flush()

    def _subscribe(self, lane: Lane, labels: Mapping[FleetTopic, str]) -> None:
        if labels:
            consumer = self._consumers.get(lane) or self._consumers.add(self._consumer(lane))
            consumer.subscribe(labels)
        elif self._consumers.get(lane) is not None:
            self._flush()
            self._consumers.close(lane)

    def _label(self, topics: Sequence[FleetTopic]) -> dict[FleetTopic, str]:
        """The labels of the topics whose table can be read."""
        labels: dict[FleetTopic, str] = {}
        for names in self._writer.apart(topic.name for topic in topics):
            try:
                labels |= self._writer.label([topic for topic in topics if topic.name in names])
            except (SparkSinkError, OSError) as error:
                self._refuse(names, error)
        return labels

    def _refuse(self, labels: Collection[str], error: Exception) -> None:
        """The table of these refuses: it is tried again after a pause, and holds up no topic of another table."""
        if self._writer.shared:
            raise error
        self._refusals.note(labels, error)

    def _try_again(self) -> None:
        if not (labels := self._refusals.due()):
            return
        for lane, topics in self._applied.items():
            if any(topic.name in labels for topic in topics):
                self._applied[lane] = frozenset()  # those without a label are asked for again
        self._rows = self._rows.without(labels)
        for consumer in self._consumers:
            consumer.leave_out(labels)
            consumer.take_again(labels)

    def _consumer(self, lane: Lane) -> LaneConsumer:
        config = {**self._settings.kafka[self._source], "group.id": lane.group(self._settings.group)}
        parts = LaneParts(
            positions=self._positions, before_revoked=self._flush_quietly, look_again=self._parts.look_again
        )
        return LaneConsumer(lane, config, parts)

    def _fill(self) -> None:
        """Read for one flush's time, or until there is enough; longer while the last batch is still under way."""
        until = time.monotonic() + self._settings.flush_s
        while not self._full and not self._ended.is_set():
            if not self._consumers:
                self._ended.wait(_WAIT_S)
            for consumer in self._consumers:
                if self._full:
                    return
                consumer.read(self._add, _MOST, _WAIT_S)
                if self._deferred is not None:
                    raise self._deferred
            self._settle()
            if self._wanted != self._applied or (time.monotonic() >= until and not self._background.busy):
                return

    @property
    def _full(self) -> bool:
        return self._rows.size_bytes >= self._settings.buffer_bytes

    def _add(self, label: str, message: Any) -> None:  # noqa: ANN401 - a confluent_kafka.Message
        self._rows.add(label, message)

    def _hand_over(self) -> None:
        """Let what was read be written, if nothing is under way."""
        if self._background.busy:
            return
        counted = self._consumers.records
        if counted != len(self._rows):
            # A range without its rows would be a hole that no position shows.
            raise TableError(f"{counted} records were read and {len(self._rows)} are held: reading them again")
        ranges: list[Range] = []
        topics: dict[str, FleetTopic] = {}
        for consumer in self._consumers:
            read, read_of = consumer.hand_over()
            ranges += read
            topics |= read_of
        if ranges:
            self._warn_of_headers()
            batch = ReadBatch(rows=self._rows, ranges=ranges, topics=topics)
            self._rows = self._rows.empty()
            self._background.start(batch)

    def _warn_of_headers(self) -> None:
        for label in sorted(self._rows.without_headers - self._warned):
            self._warned.add(label)
            log.warning(
                "fleet: %s/%s: its records have headers, which are not landed: include_headers = true lands them",
                self._source,
                label,
            )

    def _settle(self, *, wait: bool = False) -> None:
        """Take note of what became of the batch under way, if it has arrived."""
        written = self._background.outcome(wait=wait)
        if written is None:
            return
        self._problem = ""
        self.rows_written += written.rows
        self.commits += 1
        for label, error in written.refused.items():
            self._refuse({label}, error)
        if written.recreated:
            log.warning(
                "fleet: %s: recreated while they were read: %s", self._source, ", ".join(sorted(written.recreated))
            )
            self._parts.look_again()
            # Or it was a broker that does not know the new one yet: then nothing else would have them read on.
            self._refusals.again(written.recreated)
        out = written.recreated | written.refused.keys()
        if out:
            self._rows = self._rows.without(out)
        for consumer in self._consumers:
            consumer.leave_out(out)
            consumer.settle(written.ends, written.ahead)

    def _flush(self) -> None:
        """Have all that was read in the tables before going on."""
        self._settle(wait=True)
        self._hand_over()
        self._settle(wait=True)

    def _flush_quietly(self) -> None:
        """Before partitions go: where the table refuses, the next owner reads again what was read."""
        try:
            self._flush()
        except _EXPECTED as error:
            self._deferred = error
            self._rows = self._rows.empty()
            for consumer in self._consumers:
                consumer.forget()

    def _positions(self, labels: Collection[str]) -> Mapping[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for mine in self._writer.apart(labels):
            try:
                found |= self._writer.positions(mine)
            except (SparkSinkError, OSError) as error:
                self._refuse(mine, error)
        return found

    def _fail(self, error: Exception) -> None:
        """Say so, forget what is not in the table, and read it again after a pause."""
        with contextlib.suppress(*_EXPECTED):
            self._settle(wait=True)  # whatever became of it: the tables' positions tell
        # Each attempt writes a file of another name: the same refusal is reported once.
        problem = _PART.sub("part-*", f"{self._source}: {error}")
        if problem != self._problem:
            log.error("fleet: %s", problem)
        self._problem = problem
        self._rows, self._deferred = self._rows.empty(), None
        for consumer in self._consumers:
            consumer.forget()
        self._ended.wait(_PAUSE_S)
        for consumer in self._consumers:
            try:
                consumer.rewind()
            except (SparkSinkError, KafkaException, OSError) as again:
                log.warning("fleet: %s: not rewound: %s", self._source, again)

    def _end(self) -> None:
        self._flush_quietly()
        for consumer in self._consumers:
            self._consumers.close(consumer.lane)
