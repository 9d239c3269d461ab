"""Light ingestion: a thread and a handful of consumers for each cluster, straight into Delta tables."""

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from assignors._errors import AssignorError
from assignors.fleet import FleetTopic, Lane, lane_change
from spark_sink._errors import SparkSinkError, TableError
from spark_sink._offsets import TopicPartition
from spark_sink.fleet._lane import LaneConsumer, LaneParts
from spark_sink.fleet._writer import Rows, TableWriter

log = logging.getLogger(__name__)

Assigned = Mapping[Lane, frozenset[FleetTopic]]

TopicIds = Callable[[Collection[str]], Mapping[str, str]]
"""The ids of topics as they are now, by name; a topic that is not there has none."""

_EXPECTED = (SparkSinkError, AssignorError, KafkaException, OSError)
_WAIT_S = 0.05
_MOST = 5_000
_ROWS = 200_000
_PAUSE_S = 1.0
_RECENT_S = 10.0
_PART = re.compile(r"part-[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """How a source is read.

    Attributes:
        group: consumer groups are `<group>.lane-<number>`, and tables keep the positions of `<group>`.
        kafka: librdkafka's properties, by source.
        flush_s: records are brought into the table so often.
    """

    group: str
    kafka: Mapping[str, Mapping[str, Any]]
    flush_s: float = 1.0


class SourceReader:
    """Reads the lanes of one source in a thread of its own, and brings what came into the table together.

    Args:
        source: name.
        settings: how.
        writer: of its tables; only this thread uses it.
        ids: asked before records are brought in.
        look_again: called when a topic seems to have been made anew.
    """

    def __init__(
        self,
        source: str,
        settings: ReaderSettings,
        writer: TableWriter,
        ids: TopicIds,
        look_again: Callable[[], None],
    ) -> None:
        self._source = source
        self._settings = settings
        self._writer = writer
        self._ids = ids
        self._look_again = look_again
        self._wanted: Assigned = {}
        self._applied: dict[Lane, frozenset[FleetTopic]] = {}
        self._lanes: dict[Lane, LaneConsumer] = {}
        self._rows = Rows()
        self._ended = threading.Event()
        self._problem = ""
        self._refused: dict[str, tuple[str, float]] = {}
        self._again: set[str] = set()
        self._again_at = 0.0
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
        found = [problem for lane in list(self._lanes.values()) for problem in list(lane.problems.values())]
        now = time.monotonic()
        found += [problem for problem, at in list(self._refused.values()) if now - at < _RECENT_S]
        return [*([self._problem] if self._problem else []), *sorted(set(found))]

    def lag(self) -> dict[str, int]:
        """Records behind, by topic."""
        return {label: behind for lane in list(self._lanes.values()) for label, behind in lane.lag().items()}

    @property
    def rebalances(self) -> int:
        """How often partitions came or went."""
        return sum(lane.rebalances for lane in list(self._lanes.values()))

    @property
    def consumers(self) -> int:
        """How many there are."""
        return len(self._lanes)

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
                self._flush()
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
        labels = self._label([topic for topics in new.values() for topic in topics])
        for lane, topics in new.items():
            self._subscribe(lane, {topic: labels[topic] for topic in topics if topic in labels})
            self._applied[lane] = topics

    def _subscribe(self, lane: Lane, labels: Mapping[FleetTopic, str]) -> None:
        if labels:
            if lane not in self._lanes:
                self._lanes[lane] = self._consumer(lane)
            self._lanes[lane].subscribe(labels)
        elif lane in self._lanes:
            self._flush()
            self._lanes.pop(lane).close()

    def _label(self, topics: Sequence[FleetTopic]) -> dict[FleetTopic, str]:
        """The labels of the topics whose table can be read."""
        labels: dict[FleetTopic, str] = {}
        for names in self._writer.apart(topic.name for topic in topics):
            try:
                labels |= self._writer.label(topic for topic in topics if topic.name in names)
            except (SparkSinkError, OSError) as error:
                self._refuse(names, error)
        return labels

    def _refuse(self, labels: Collection[str], error: Exception) -> None:
        """The table of these refuses: it is tried again after a pause, and holds up no topic of another table."""
        if self._writer.shared:
            raise error
        now = time.monotonic()
        for label in labels:
            _, before = self._refused.get(label, ("", -_RECENT_S))
            if now - before >= _RECENT_S:
                log.error("fleet: %s/%s: %s", self._source, label, error)
            self._refused[label] = f"{self._source}/{label}: {error}", now
        self._again |= set(labels)
        self._again_at = now + _PAUSE_S

    def _try_again(self) -> None:
        if not self._again or time.monotonic() < self._again_at:
            return
        labels, self._again = self._again, set()
        for lane, topics in self._applied.items():
            if any(topic.name in labels for topic in topics):
                self._applied[lane] = frozenset()  # those without a label are asked for again
        for consumer in self._lanes.values():
            consumer.take_again(labels)

    def _consumer(self, lane: Lane) -> LaneConsumer:
        config = {**self._settings.kafka[self._source], "group.id": lane.group(self._settings.group)}
        parts = LaneParts(positions=self._positions, before_revoked=self._flush_quietly, look_again=self._look_again)
        return LaneConsumer(lane, config, parts)

    def _fill(self) -> None:
        """Read for one flush's time, or until there is enough."""
        until = time.monotonic() + self._settings.flush_s
        while time.monotonic() < until and len(self._rows) < _ROWS and not self._ended.is_set():
            if not self._lanes:
                self._ended.wait(_WAIT_S)
            for lane in self._lanes.values():
                lane.read(self._add, _MOST, _WAIT_S)
                if self._deferred is not None:
                    raise self._deferred
            if self._wanted != self._applied:
                return

    def _add(self, label: str, message: Any) -> None:  # noqa: ANN401 - a confluent_kafka.Message
        self._rows.add(label, message)

    def _leave_out_other_topics(self) -> None:
        """Leave out what may be of a topic that was made anew: it belongs under another name, from its beginning on.

        librdkafka reads by name. Where the new log has grown past the old position it just goes on, without an error.
        Ids are asked for after reading and only ever change forward: one that is the same now was so when it was read.
        """
        read = {label: topic for lane in self._lanes.values() for label, topic in lane.read_of().items()}
        if not read:
            return
        now = self._ids({topic.name for topic in read.values()})
        other = {label for label, topic in read.items() if now.get(topic.name, topic.id) != topic.id}
        if not other:
            return
        log.warning("fleet: %s: made anew while they were read: %s", self._source, ", ".join(sorted(other)))
        self._rows = self._rows.without(other)
        for lane in self._lanes.values():
            lane.leave_out(other)
        self._look_again()

    def _flush(self) -> None:
        self._leave_out_other_topics()
        ranges = [one for lane in self._lanes.values() for one in lane.ranges()]
        if not ranges:
            return
        counted = sum(lane.records for lane in self._lanes.values())
        if counted != len(self._rows):
            # A range without its rows would be a hole that no position shows.
            raise TableError(f"{counted} records were read and {len(self._rows)} are held: reading them again")
        ahead: dict[TopicPartition, int] = {}
        refused: set[str] = set()
        for labels in self._writer.apart(one.topic for one in ranges):
            try:
                ahead |= self._writer.commit(self._rows, [one for one in ranges if one.topic in labels])
            except (SparkSinkError, OSError) as error:
                self._refuse(labels, error)
                refused |= labels
        self.rows_written += len(self._rows.without(refused) if refused else self._rows)
        self.commits += 1
        self._rows = Rows()
        for lane in self._lanes.values():
            lane.leave_out(refused)
            lane.settle(ahead)

    def _flush_quietly(self) -> None:
        """Before partitions go: where the table refuses, all that was read is read again, by whoever has it then."""
        try:
            self._flush()
        except _EXPECTED as error:
            self._deferred = error
            self._rows = Rows()
            for lane in self._lanes.values():
                lane.forget()

    def _positions(self, labels: Iterable[str]) -> Mapping[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for mine in self._writer.apart(labels):
            try:
                found |= self._writer.positions(mine)
            except (SparkSinkError, OSError) as error:
                self._refuse(mine, error)
        return found

    def _fail(self, error: Exception) -> None:
        """Say so, forget what is not in the table, and read it again after a pause."""
        # Each attempt writes a file of another name: the same refusal is told once.
        problem = _PART.sub("part-*", f"{self._source}: {error}")
        if problem != self._problem:
            log.error("fleet: %s", problem)
        self._problem = problem
        self._rows, self._deferred = Rows(), None
        for lane in self._lanes.values():
            lane.forget()
        self._ended.wait(_PAUSE_S)
        for lane in self._lanes.values():
            try:
                lane.rewind()
            except (SparkSinkError, KafkaException, OSError) as again:
                log.warning("fleet: %s: not rewound: %s", self._source, again)

    def _end(self) -> None:
        self._flush_quietly()
        for lane in self._lanes.values():
            lane.close()
        self._lanes = {}


@dataclass(slots=True)
class LightIngestion:
    """Keeps the contract of `Ingestion` with one `SourceReader` for each source.

    Attributes:
        readers: by source.
    """

    readers: Mapping[str, SourceReader]
    _assigned: Assigned = field(default_factory=dict)

    def assign(self, lanes: Assigned) -> None:
        """Read this from now on."""
        self._assigned = lanes
        for source, reader in self.readers.items():
            reader.assign({lane: topics for lane, topics in lanes.items() if lane.source == source})

    def problems(self) -> Sequence[str]:
        """What does not go well now."""
        return [problem for reader in self.readers.values() for problem in reader.problems()]

    def figures(self) -> Mapping[str, Any]:
        """Consumers, rows, commits, rebalances and lag."""
        return {
            "consumers": sum(reader.consumers for reader in self.readers.values()),
            "rows": sum(reader.rows_written for reader in self.readers.values()),
            "commits": sum(reader.commits for reader in self.readers.values()),
            "rebalances": sum(reader.rebalances for reader in self.readers.values()),
            "lag": {
                f"{source}/{topic}": behind
                for source, reader in self.readers.items()
                for topic, behind in reader.lag().items()
            },
        }

    def close(self) -> None:
        """Bring in what was read and leave all groups."""
        for reader in self.readers.values():
            reader.end()
        for reader in self.readers.values():
            reader.join(30.0)
