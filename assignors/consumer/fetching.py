"""Fetching by librdkafka: which partitions, from where, and no record of any other."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.errors import MembershipError
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_LEADERS_S: Final = 1.0
_ONE_BY_ONE: Final = 8  # more topics are asked for at once, with all others that there are


class Fetching:
    """librdkafka's consumer, told what to read.

    Contract:
    * Not safe for threads.
    * After `remove` no record of these is delivered that was fetched before. librdkafka itself drops what it had
      queued: each partition has a version there, which grows with each removal, and older records are thrown away.
    * `take` delivers records of owned partitions only. The ownership may shrink without `remove`, where a program was
      too slow for its group; then each record is looked at, else none.
    * A consumer that has ended for good is made anew, and goes on where the last delivery ended.

    Args:
        config: librdkafka's properties.
    """

    GROUPS: Final = OFFSET_STORED
    """Begin where the group has committed, else where auto.offset.reset says."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = dict(config)
        self._consumer = Consumer(self._config)
        self._checked = Ownership()
        self._sought: dict[TopicPartition, int] = {}
        self._begun: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()

    @property
    def client(self) -> Consumer:
        """Librdkafka's consumer, to ask what has nothing to do with fetching."""
        return self._consumer

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is read."""
        return frozenset(self._begun)

    def add(self, begins: Mapping[TopicPartition, int]) -> None:
        """Read these too, from these offsets on."""
        new = {key: at for key, at in begins.items() if key not in self._begun}
        unknown = {topic for topic, _ in new} - {topic for topic, _ in self._begun}
        self._begun |= new
        self._checked = Ownership()
        if new:
            self._assign(new, unknown)

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Read these no more."""
        gone = [key for key in partitions if self._begun.pop(key, None) is not None]
        for key in gone:
            self._sought.pop(key, None)
            self._paused.discard(key)
        if gone:
            self._consumer.incremental_unassign([KafkaPartition(*key) for key in gone])

    def take(self, most: int, wait_s: float, ownership: Callable[[], Ownership]) -> list[Message]:
        """Up to so many records; returns when it has them, or after the wait."""
        found: list[Message] = []
        try:
            # A signal that comes during the call raises after it, before its value could be assigned: Ctrl-C would
            # lose the records. All in one call of C, they are in the list by then.
            found.extend(itertools.chain.from_iterable(map(self._consumer.consume, (most,), (wait_s,))))
            return self._deliverable(found, ownership) if found else found
        except KafkaException as error:
            self._begin_anew(error.args[0])
            return []
        except BaseException:
            self.put_back(found)
            raise

    def put_back(self, messages: Iterable[Message]) -> None:
        """Deliver these again, which their program has not seen, and do not count them as delivered."""
        first: dict[TopicPartition, int] = {}
        for one in messages:
            if one.error() is None:
                first.setdefault(_key(one), int(one.offset() or 0))
        for key, at in first.items():
            if key in self._begun:
                self.seek(key, at)

    def _deliverable(self, found: list[Message], ownership: Callable[[], Ownership]) -> list[Message]:
        # Looked at after the wait: what was given up meanwhile is not delivered.
        owned = ownership()
        if owned is not self._checked:
            if not self._begun.keys() <= owned.partitions:
                found = [one for one in found if _key(one) in owned.partitions or one.error() is not None]
            else:
                self._checked = owned
        if self._sought:
            for one in found:
                self._sought.pop(_key(one), None)
        last = found[-1].error() if found else None
        if last is not None and last.fatal():
            self._begin_anew(last)
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """The offset after the last record delivered, or sought since; what has neither is left out."""
        asked = [KafkaPartition(*key) for key in self._begun]
        found = {(one.topic, one.partition): one.offset for one in self._consumer.position(asked)} if asked else {}
        return {key: at for key, at in (found | self._sought).items() if at >= 0}

    def seek(self, key: TopicPartition, offset: int) -> None:
        """Go on there.

        Raises:
            MembershipError: it is not read.
        """
        if key not in self._begun:
            raise MembershipError(f"{key[0]!r} partition {key[1]} is not assigned: seek() when it is")
        # A seek fails while the first fetch is being prepared; removing and adding does not.
        self._consumer.incremental_unassign([KafkaPartition(*key)])
        self._consumer.incremental_assign([KafkaPartition(*key, offset)])
        if key in self._paused:
            self._consumer.pause([KafkaPartition(*key)])
        self._sought[key] = offset

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver nothing of these until `resume`."""
        these = [key for key in partitions if key in self._begun]
        self._paused.update(these)
        self._consumer.pause([KafkaPartition(*key) for key in these])

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver them again."""
        these = [key for key in partitions if key in self._begun]
        self._paused.difference_update(these)
        self._consumer.resume([KafkaPartition(*key) for key in these])

    def close(self) -> None:
        """End it."""
        self._consumer.close()

    def _assign(self, begins: Mapping[TopicPartition, int], topics: Collection[str]) -> None:
        """Have these read, when the leaders of these topics were asked for."""
        try:
            self._ask_for_leaders(topics)
        finally:  # also after Ctrl-C: they count as read
            self._consumer.incremental_assign([KafkaPartition(*key, at) for key, at in begins.items()])
            self._consumer.pause([KafkaPartition(*key) for key in begins.keys() & self._paused])

    def _ask_for_leaders(self, topics: Collection[str]) -> None:
        """Where librdkafka does not know a leader it waits for half a second, or a whole one, until it asks it."""
        asked: Iterable[dict[str, str]] = ({"topic": topic} for topic in topics) if len(topics) <= _ONE_BY_ONE else [{}]
        with contextlib.suppress(KafkaException):  # asked again by librdkafka
            for which in asked:
                self._consumer.list_topics(**which, timeout=_LEADERS_S)

    def _begin_anew(self, error: KafkaError) -> None:
        log.warning("fetching ended (%s): beginning anew with %d partitions", error, len(self._begun))
        begins = self._begun | self.positions()
        self._consumer.close()
        self._consumer = Consumer(self._config)
        self._assign(begins, {topic for topic, _ in begins})


def _key(message: Message) -> TopicPartition:
    return str(message.topic()), int(message.partition() or 0)
