"""One lane of an agent: a librdkafka consumer in the lane's group, with the position of each of its partitions."""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.fleet import FleetTopic, Lane
from spark_sink.errors import SparkSinkError
from spark_sink.fleet.first_offsets import located
from spark_sink.fleet.group_offset_commits import OffsetHints
from spark_sink.fleet.intended_partitions import IntendedPartitions, Numbered
from spark_sink.fleet.lane_configuration import lane_config
from spark_sink.fleet.lane_lag import LaneLag
from spark_sink.fleet.lane_positions import LanePositions
from spark_sink.fleet.received_bytes import received_by_broker
from spark_sink.ranges.batch_offset import Range, TopicPartition

log = logging.getLogger(__name__)

Positions = Callable[[Collection[str]], Mapping[TopicPartition, int]]
"""Returns the table's next offset of each partition of these labels."""

_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})  # noqa: SLF001
_RESET = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001
_END = KafkaError._PARTITION_EOF  # noqa: SLF001
_AWAY = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE})  # noqa: SLF001
_NO_TOPIC = ""
_WATERMARKS_S = 2.0
_RESTART_S = 1.0
_CORRECT_S = 1.0


def _shares(labels: Mapping[FleetTopic, str]) -> set[Numbered]:
    return {(topic.name, number) for topic in labels for number in topic.share or ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneParts:
    """The parts of a lane.

    Attributes:
        positions: called when partitions are assigned.
        before_revoked: called before partitions go to another agent; writes the records that were read.
        look_again: called when a topic may have been recreated.
    """

    positions: Positions
    before_revoked: Callable[[], None]
    look_again: Callable[[], None]


class LaneConsumer:
    """A consumer of one lane; used by one thread, except `lag`.

    Args:
        lane: the lane.
        config: librdkafka's properties, including group.id.
        parts: the parts of the lane.
    """

    def __init__(self, lane: Lane, config: Mapping[str, Any], parts: LaneParts) -> None:
        self.lane = lane
        self._parts = parts
        self._consumer = Consumer({**lane_config(config), "stats_cb": self._hear_statistics})
        self._hints = OffsetHints(self._consumer, seated=lane.seated)
        self.received: Mapping[int, int] = {}
        self._positions_held = LanePositions()
        self._intended = IntendedPartitions()
        self._correct_at = 0.0
        self._stopped: set[tuple[str, int]] = set()
        self._restart_at = 0.0
        self._failure: Exception | None = None
        self._partitions: Mapping[str, list[int]] = {}
        self._lag = LaneLag(lambda key: self._consumer.get_watermark_offsets(KafkaPartition(*key), cached=True))
        self.problems: dict[str, str] = {}
        self.rebalances = 0

    def lag(self) -> Mapping[str, int]:
        """Return the records not yet in the table by topic name, at most a second old, without topics of unknown lag.

        Any thread may call. Another thread must not call the client itself: its calls wait for each other, and with a
        thread that reads without a pause they may wait forever.
        """
        return self._lag.records

    def lag_s(self) -> Mapping[str, float]:
        """The age of the oldest unread record in seconds, by topic's name; as `lag`."""
        return self._lag.seconds

    def partitions(self) -> Mapping[str, list[int]]:
        """Return the partitions that are read, by topic's name; as `lag`."""
        return self._partitions

    def _hear_statistics(self, text: str) -> None:
        self.received = received_by_broker(json.loads(text))

    def _look_at_lag(self) -> None:
        if self._lag.due():
            held = {TopicPartition(name, n): at for name, n, at in self._positions_held.positions()}
            self._hints.renew(self._lag.measure(held))
            self._partitions = self._positions_held.partitions()

    def subscribe(self, labels: Mapping[FleetTopic, str]) -> None:
        """Read these topics from now on, or their shares in a seated lane; partitions that stay are not interrupted."""
        before = self._positions_held.names
        if self._gives_up(labels):
            # While the topics are still followed: the offsets of others are not committed to the group.
            self._parts.before_revoked()
        new = self._positions_held.follow(labels)
        self.problems = {}
        # Also a topic that left and returned before the group revoked it: no records of it were taken in between.
        held = [one for one in self._consumer.assignment() if one.topic in new]
        if held:
            self._consumer.incremental_unassign(held)
            self._gain(self._consumer, held)
        if self.lane.seated:
            self._take_shares(labels)
        elif before != (names := self._positions_held.names):
            self._consumer.subscribe(sorted(names), on_assign=self._gain, on_revoke=self._yield, on_lost=self._lose)

    def _gives_up(self, labels: Mapping[FleetTopic, str]) -> bool:
        """Return whether a topic leaves or changes its label, or a partition leaves the shares of a seated lane."""
        after = {topic.name: label for topic, label in labels.items()}
        if any(after.get(name) != label for name, label in self._positions_held.labels.items()):
            return True
        shares = _shares(labels)
        return self.lane.seated and any((one.topic, one.partition) not in shares for one in self._consumer.assignment())

    def _take_shares(self, labels: Mapping[FleetTopic, str]) -> None:
        """Read exactly the agent's shares of these topics, without the group's protocol."""
        self._intended.replace(_shares(labels))
        gained, lost = self._intended.differences(self._consumer.assignment())
        if lost:
            self.rebalances += 1
            self._drop(lost)
            self._consumer.incremental_unassign(lost)
        if gained:
            self._gain(self._consumer, gained)

    def _correct(self) -> None:
        """Assign the partitions that the client should have and has not, because a part of a change failed."""
        if time.monotonic() < self._correct_at:
            return
        self._correct_at = time.monotonic() + _CORRECT_S
        missing, surplus = self._intended.differences(self._consumer.assignment())
        if not missing and not surplus:
            return
        log.warning("fleet: %s: assigns %s and gives up %s, after a failed change", self.lane, missing, surplus)
        self._parts.before_revoked()  # else the records read of these partitions would be read twice
        if surplus:
            self._drop(surplus)
            self._consumer.incremental_unassign(surplus)
        if missing:
            self._take_up(self._consumer, missing)

    def read(self, add: Callable[[str, Any], None], most: int, wait_s: float) -> int:
        """Take received records, and serve the group.

        Args:
            add: takes each record with its label. It is a function, because a revocation during the call writes the
                records read so far and starts a new buffer.
            most: maximum number of records to take.
            wait_s: longest wait for the first record.

        Returns:
            Number of records received.
        """
        count = 0
        for message in self._consumer.consume(most, wait_s):
            error = message.error()
            if error is not None:
                self._hear(error, message)
                continue
            offset = message.offset() or 0
            key = self._positions_held.wants(message.topic() or "", message.partition() or 0, offset)
            if key is None:
                continue
            count += 1
            add(key.topic, message)
            if self._positions_held.take(key, offset):
                self._date(message)
        if count:
            self.problems.pop(_NO_TOPIC, None)
        self._restart()
        self._correct()
        self._look_at_lag()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return count

    @property
    def records(self) -> int:
        """Number of records that were read and are not handed over."""
        return self._positions_held.records

    def hand_over(self) -> tuple[list[Range], dict[str, FleetTopic]]:
        """Return the ranges of the records read so far, and their topics by label, for writing. Reading continues."""
        return self._positions_held.hand_over()

    def settle(self, ends: Mapping[TopicPartition, int], ahead: Mapping[TopicPartition, int]) -> None:
        """Record that the handed over records are in the table; continue from the table's position if it is further.

        Args:
            ends: ends of the handed over ranges, by partition; also those of other lanes.
            ahead: positions of the table.
        """
        onward, held = self._positions_held.settle(ends, ahead)
        for key, at in onward.items():
            log.info(
                "fleet: %s/%d: the table is at %d already, reading on from there", *key, at, extra={"topic": key.topic}
            )
            self._seek(KafkaPartition(*key, at))
        self._hints.commit(held)

    def leave_out(self, labels: Collection[str]) -> None:
        """Drop the records read of these labels, and take no more of them until they are assigned again."""
        self._positions_held.leave_out(labels)

    def forget(self) -> None:
        """Drop the records that are not in the table, and take no more until `rewind`, to leave no hole."""
        self._positions_held.forget()

    def rewind(self) -> None:
        """Drop the records that are not in the table, and read them again.

        Until this succeeds no record is taken: `read` raises an error of it, so the caller tries again.
        """
        self._failure = None
        self._positions_held.clear()
        try:
            self.take_again(set(self._positions_held.labels.values()))
        except (SparkSinkError, KafkaException, OSError) as error:
            self._failure = error
            self._look_at_lag()  # it grows meanwhile, and no other lane is read after the first failure
        else:
            self._positions_held.resume()

    def take_again(self, labels: Collection[str]) -> None:
        """Continue these labels from the table's positions.

        Raises:
            TableError: the table cannot be read.
        """
        known_as = self._positions_held.labels
        held = [one for one in self._consumer.assignment() if known_as.get(one.topic) in labels]
        if held:
            known = self._parts.positions({known_as[one.topic] for one in held})
            self._consumer.incremental_unassign(held)
            self._begin(self._consumer, held, known)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _gain(self, consumer: Consumer, partitions: Sequence[KafkaPartition]) -> None:
        self.rebalances += 1
        self._intended.add(partitions)
        self._take_up(consumer, partitions)

    def _take_up(self, consumer: Consumer, partitions: Sequence[KafkaPartition]) -> None:
        """Read partitions from the table's positions on."""
        known: Mapping[TopicPartition, int] = {}
        labels = self._positions_held.labels
        gained = {labels[one.topic] for one in partitions if one.topic in labels}
        try:
            # librdkafka pauses all partitions until this returns, so no fetch is wasted.
            known = self._parts.positions(gained) if gained else {}
        except (SparkSinkError, OSError) as error:
            # An error must not leave the callback, because the partitions would have no reader: `read` raises it.
            self._failure, self._positions_held.stale = error, True
        self._begin(consumer, partitions, known)

    def _begin(
        self, consumer: Consumer, partitions: Sequence[KafkaPartition], known: Mapping[TopicPartition, int]
    ) -> None:
        begin = []
        for one in partitions:
            key = self._positions_held.key(one.topic, one.partition)
            self._positions_held.begin(key, known.get(key))
            self._stopped.discard((one.topic, one.partition))
            begin.append(KafkaPartition(one.topic, one.partition, known.get(key, OFFSET_BEGINNING)))
        consumer.incremental_assign(located(consumer, begin) if self.lane.seated else begin)

    def _yield(self, consumer: Consumer, partitions: Sequence[KafkaPartition]) -> None:
        self.rebalances += 1
        self._intended.remove(partitions)
        self._parts.before_revoked()
        self._drop(partitions)
        consumer.incremental_unassign(list(partitions))

    def _lose(self, consumer: Consumer, partitions: Sequence[KafkaPartition]) -> None:
        # If another agent was faster, the table leaves these records out; after a return none may be held twice.
        self._intended.remove(partitions)
        self._parts.before_revoked()
        self._drop(partitions)
        consumer.incremental_unassign(list(partitions))

    def _drop(self, partitions: Iterable[KafkaPartition]) -> None:
        self._positions_held.drop(self._positions_held.key(one.topic, one.partition) for one in partitions)

    def _hear(self, error: KafkaError, message: Any) -> None:  # noqa: ANN401 - a confluent_kafka.Message
        code, topic = error.code(), message.topic() or ""
        if code == _END:
            self._positions_held.reach_end(topic, message.partition() or 0, message.offset() or 0)
        elif code in _RESET:
            self._stopped.add((topic, message.partition() or 0))
            self._parts.look_again()
        elif code in _GONE:
            self._note(topic, f"{self.lane.source}/{topic}: the topic was deleted or recreated")
            self._parts.look_again()
        elif code in _AWAY:
            self._note(_NO_TOPIC, f"{self.lane.source}: no broker answers")
        else:
            self._note(topic, f"{self.lane.source}/{topic}: {error.str()}")

    def _date(self, message: Any) -> None:  # noqa: ANN401 - a confluent_kafka.Message
        kind, stamp_ms = message.timestamp()
        if kind:
            key = TopicPartition(message.topic(), message.partition())
            self._lag.written(key, message.offset(), stamp_ms / 1000)

    def _restart(self) -> None:
        """Check partitions whose position was outside their log, because librdkafka has stopped them."""
        if not self._stopped or time.monotonic() < self._restart_at:
            return
        for topic, partition in sorted(self._stopped):
            self._reset(topic, partition)
        self._restart_at = time.monotonic() + _RESTART_S

    def _reset(self, topic: str, partition: int) -> None:
        """Handle a reset: records are gone, the topic was recreated, or a broker answered with old data."""
        key = self._positions_held.key(topic, partition)
        if not self._positions_held.holds(key):
            self._stopped.discard((topic, partition))  # no longer held, or left out until it is assigned again
            return
        at = self._positions_held.reached(key)
        try:
            low, high = self._consumer.get_watermark_offsets(KafkaPartition(topic, partition), timeout=_WATERMARKS_S)
        except KafkaException as error:
            self._note(topic, f"{self.lane.source}/{topic}: its offsets cannot be asked for: {error.args[0].str()}")
            return
        if at is not None and at > high:
            self._note(topic, f"{self.lane.source}/{topic}: the log ends at {high}, before {at}: recreated topic?")
            self._parts.look_again()
            return
        if at is not None and at < low:
            text = "fleet: %s/%d: offsets %d to %d are gone by retention, reading on at %d"
            log.error(text, *key, at, low - 1, low, extra={"topic": topic})
        self._stopped.discard((topic, partition))
        self.problems.pop(topic, None)
        self._seek(KafkaPartition(topic, partition, low if at is None else max(at, low)))

    def _seek(self, one: KafkaPartition) -> None:
        # A seek would not help: librdkafka has stopped a partition that it found out of range.
        try:
            self._consumer.incremental_unassign([KafkaPartition(one.topic, one.partition)])
            self._consumer.incremental_assign([one])
        except KafkaException as error:
            log.debug("fleet: %s/%d is not held any more: %s", one.topic, one.partition, error)

    def _note(self, key: str, problem: str) -> None:
        if self.problems.get(key) != problem:
            log.warning("fleet: %s", problem, extra={"topic": key or None})
        self.problems[key] = problem
