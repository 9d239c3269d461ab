"""Reads one source: one thread reads with a few consumers, and another writes the records to the tables."""

import contextlib
import logging
import math
import re
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from assignors.errors import AssignorError
from assignors.fleet import FleetTopic, Lane, lane_change
from assignors.scaling import narrowest
from spark_sink.errors import SparkSinkError, TableError
from spark_sink.fleet.lane_consumer import LaneConsumer, LaneParts
from spark_sink.fleet.open_lanes import Consumers
from spark_sink.fleet.prepared_lanes import PreparedLanes
from spark_sink.fleet.reader_settings import ReaderParts, ReaderSettings
from spark_sink.fleet.table_refusals import RefusedTables
from spark_sink.fleet.unwritten_records import RecordBuffer
from spark_sink.fleet.write_queue import BackgroundWriter, BatchWriter, ReadBatch
from spark_sink.ranges.batch_offset import Range, TopicPartition

log = logging.getLogger(__name__)

Assigned = Mapping[Lane, frozenset[FleetTopic]]

_EXPECTED = (SparkSinkError, AssignorError, KafkaException, OSError)
_WAIT_S = 0.05
_MOST = 5_000
_LONGEST_POLL_S = 1.0  # the other lanes of the source wait for it, and so does the end of the agent
_PAUSE_S = 1.0
_GATHER_S = 0.1  # in which records that were produced together arrive
_PART = re.compile(r"part-[0-9a-f]+")
_TAKEN = re.compile(r" in [0-9.]+(?:[mn]|\u00b5)?s\b")  # the time that delta-rs took for its retries


class SourceReader:
    """Reads the lanes of one source in one thread, while another thread writes the records to the tables.

    At most one batch is being written. A rebalance stops all partitions of a lane until its callback has returned, so
    the reading thread waits for the tables only if it must: before partitions go to another agent, and after an error.

    Args:
        source: name of the source.
        settings: settings of the reader.
        parts: parts of the reader.
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
        self._prepared = PreparedLanes(self._consumer)
        self._rows = RecordBuffer(include_headers=settings.include_headers)
        self._warned: set[str] = set()
        self._ended = threading.Event()
        self._woken = threading.Event()  # ends the wait for the first topics
        self._written_from = -math.inf  # monotonic time when the last batch was handed over
        self._problem = ""
        self._refusals = RefusedTables(source)
        self._deferred: Exception | None = None
        self.rows_written = 0
        self.bad_records = 0
        self.commits = 0
        self.committed_at = 0.0
        self.overtaken = 0
        self._thread = threading.Thread(target=self._run, name=f"fleet-read-{source}", daemon=True)
        self._thread.start()

    def assign(self, lanes: Assigned) -> None:
        """Read these lanes from now on; returns immediately."""
        self._wanted = dict(lanes)
        self._woken.set()

    def problems(self) -> list[str]:
        """Return the current problems."""
        found = self._consumers.problems() + self._refusals.problems()
        if not self.alive:
            found.append(f"{self._source}: reading has ended because of an unexpected error, see the log: restart")
        return [*([self._problem] if self._problem else []), *sorted(set(found))]

    def partitions(self) -> dict[str, list[int]]:
        """Return the partitions that are read, by topic."""
        return self._consumers.partitions()

    def lag(self) -> dict[str, int]:
        """Return the lag in records, by topic."""
        return self._consumers.lag()

    def lag_s(self) -> dict[str, float]:
        """Return the age of the oldest unread record in seconds, by topic; at least as long as its table refuses."""
        found, wanted = self._consumers.lag_s(), {one.name for topics in self._wanted.values() for one in topics}
        late = {name: seconds for name, seconds in self._refusals.late_s().items() if name in wanted}
        return found | {name: max(seconds, found.get(name, 0.0)) for name, seconds in late.items()}

    @property
    def alive(self) -> bool:
        """Whether its thread runs, or was asked to end; a thread that died does not restart by itself."""
        return self._thread.is_alive() or self._ended.is_set()

    @property
    def works(self) -> bool:
        """Whether records are being written: the thread runs, and no table refuses rows."""
        return self.alive and not self._problem

    @property
    def rebalances(self) -> int:
        """Number of changes of the assignment."""
        return self._consumers.rebalances

    def received(self) -> dict[int, int]:
        """Return the bytes received on the wire, by broker id."""
        return self._consumers.received()

    def tables(self) -> set[str]:
        """Return the addresses of the tables that it writes now."""
        return self._writer.addresses({topic.name for topics in list(self._applied.values()) for topic in topics})

    @property
    def consumers(self) -> int:
        """Number of consumers."""
        return len(self._consumers)

    @property
    def ended(self) -> bool:
        """Whether its thread has ended."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Start to write the records that were read and to leave the groups; `join` waits for it."""
        self._ended.set()
        self._woken.set()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        self._prepared.open(self._parts.lanes)
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
            self._prepared.close_old()
            return
        self._release(new)
        labels = self._label([topic for topics in new.values() for topic in topics])
        for lane, topics in new.items():
            self._subscribe(lane, {topic: labels[topic] for topic in topics if topic in labels})
            self._applied[lane] = topics
        self._prepared.close()

    def _release(self, new: Assigned) -> None:
        """Release topics that move to another lane from their old lane first, after writing their records.

        Otherwise one batch could have records of a partition twice: from the old consumer, and from the new one, which
        begins at the table's position.
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
            consumer = self._consumers.get(lane) or self._consumers.add(self._prepared.take(lane))
            consumer.subscribe(labels)
        elif self._consumers.get(lane) is not None:
            self._flush()
            self._consumers.close(lane)

    def _label(self, topics: Sequence[FleetTopic]) -> dict[FleetTopic, str]:
        """Return the labels of the topics whose table can be read."""
        labels: dict[FleetTopic, str] = {}
        for names in self._writer.apart(topic.name for topic in topics):
            try:
                labels |= self._writer.label([topic for topic in topics if topic.name in names])
            except (SparkSinkError, OSError) as error:
                self._refuse(names, error)
        return labels

    def _refuse(self, labels: Collection[str], error: Exception) -> None:
        """Record that the table of these refuses: retry it after a pause; topics of other tables continue."""
        if self._writer.shared:
            raise error
        if self._parts.ops is not None:
            self._parts.ops.failed(labels, error)
        self._refusals.note(labels, error)

    def _try_again(self) -> None:
        if not (labels := self._refusals.due()):
            return
        for lane, topics in self._applied.items():
            if any(topic.name in labels for topic in topics):
                self._applied[lane] = frozenset()  # labels of topics without one are requested again
        self._rows = self._rows.without(labels)
        for consumer in self._consumers:
            consumer.leave_out(labels)
            consumer.take_again(labels)

    def _consumer(self, lane: Lane) -> LaneConsumer:
        client = f"azimuth.{self._settings.agent}.{self._source}.lane-{lane.number}"
        kafka = self._settings.kafka[self._source]
        config = {"client.id": client, **kafka, "group.id": lane.group(self._settings.group)}
        parts = LaneParts(
            positions=self._positions, before_revoked=self._flush_quietly, look_again=self._parts.look_again
        )
        return LaneConsumer(lane, config, parts)

    def _fill(self) -> None:
        """Read for one flush interval, or until the buffer is full; longer while the last batch is being written.

        The first records after a quiet interval are written at once, with what comes with them, so that their age is
        not the interval; at a constant flow there is one batch an interval either way.
        """
        until = time.monotonic() + self._settings.flush_s
        due = until
        while not self._full and not self._ended.is_set():
            if not self._consumers:
                self._woken.wait(_WAIT_S)
                self._woken.clear()
            for consumer in self._consumers:
                if self._full:
                    return
                most, wait_s = self._poll(consumer.lane)
                consumer.read(self._add, most, self._at_most_until(due, wait_s))
                if self._deferred is not None:
                    raise self._deferred
                if len(self._rows):
                    gathered = max(time.monotonic() + _GATHER_S, self._written_from + self._settings.flush_s)
                    due = min(due, gathered)
            self._settle()
            if self._wanted != self._applied or (time.monotonic() >= due and not self._background.busy):
                return

    def _at_most_until(self, due: float, wait_s: float) -> float:
        """Return the wait of a lane, so that the waits of all lanes end before the records are written."""
        if self._background.busy or not len(self._rows):
            return wait_s
        return min(wait_s, max(0.0, due - time.monotonic()) / len(self._consumers))

    def _poll(self, lane: Lane) -> tuple[int, float]:
        """Return the maximum number of records and the longest time of a lane's next poll."""
        published = self._parts.polls()
        if not published:
            return _MOST, _WAIT_S
        names = {topic.name for topic in self._applied.get(lane, ())}
        return narrowest((one for name, one in published.items() if name in names), _MOST, _WAIT_S, _LONGEST_POLL_S)

    @property
    def _full(self) -> bool:
        return self._rows.size_bytes >= self._settings.buffer_bytes

    def _add(self, label: str, message: Any) -> None:  # noqa: ANN401 - a confluent_kafka.Message
        self._rows.add(label, message)

    def _hand_over(self) -> None:
        """Start writing the records read so far, unless a batch is being written."""
        if self._background.busy:
            return
        counted = self._consumers.records
        if counted != len(self._rows):
            # A range without its rows would be a hole that the positions do not show.
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
            self._written_from = time.monotonic()

    def _warn_of_headers(self) -> None:
        for label in sorted(self._rows.without_headers - self._warned):
            self._warned.add(label)
            log.warning(
                "fleet: %s/%s: its records have headers, which are not landed: include_headers = true lands them",
                self._source,
                label,
                extra={"topic": label},
            )

    def _settle(self, *, wait: bool = False) -> None:
        """Handle the outcome of the batch being written, if it is complete."""
        written = self._background.outcome(wait=wait)
        if written is None:
            return
        self._problem = ""
        self.rows_written += written.rows
        self.bad_records += written.quarantined
        self.commits += 1
        self.committed_at = time.time()
        self.overtaken += len(written.ahead)
        self._refusals.taken({key.topic for key in written.ends} - written.refused.keys())
        for label, error in written.refused.items():
            self._refuse({label}, error)
        if written.recreated:
            log.warning(
                "fleet: %s: recreated while they were read: %s", self._source, ", ".join(sorted(written.recreated))
            )
            self._parts.look_again()
            # The cause may also be a broker that does not know the new topic yet: only this retry resumes the reading.
            self._refusals.again(written.recreated)
        out = written.recreated | written.refused.keys()
        if out:
            self._rows = self._rows.without(out)
        for consumer in self._consumers:
            consumer.leave_out(out)
            consumer.settle(written.ends, written.ahead)

    def _flush(self) -> None:
        """Write all records that were read, and wait for it."""
        self._settle(wait=True)
        self._hand_over()
        self._settle(wait=True)

    def _flush_quietly(self) -> None:
        """Write before a revocation; if the table refuses, the next owner reads the records again."""
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
        """Log the error, drop the records that are not in the table, and read them again after a pause."""
        with contextlib.suppress(*_EXPECTED):
            self._settle(wait=True)  # the outcome does not matter, because the tables' positions decide
        # Names of files and times differ in each attempt, so the message has none: the same refusal is reported once.
        problem = _TAKEN.sub("", _PART.sub("part-*", f"{self._source}: {error}"))
        if self._parts.ops is not None:
            self._parts.ops.failed((), error)
        if problem != self._problem:
            log.error("fleet: %s", problem)
        self._problem = problem
        self._rows, self._deferred = self._rows.empty(), None
        for consumer in self._consumers:
            consumer.forget()
        self._ended.wait(_PAUSE_S)
        for consumer in self._consumers:
            consumer.rewind()

    def _end(self) -> None:
        self._flush_quietly()
        self._prepared.close()
        self._consumers.close_all()
