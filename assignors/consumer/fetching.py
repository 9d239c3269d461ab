"""Fetching by librdkafka: which partitions, from where, and no record of any other."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.read_ahead import ReadAhead, key_of_message
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_LEADERS_S: Final = 1.0
_ONE_BY_ONE: Final = 8  # more topics are asked for at once, with all others that there are


class Fetching:
    """librdkafka's consumer, and the records that were taken from it ahead of `poll`.

    Contract:
    * Not safe for threads.
    * After `remove` no record of these partitions is delivered that was fetched before. librdkafka itself drops what it
      had queued: each partition has a version there, which grows with each removal, and older records are thrown away.
    * `take` delivers records of owned partitions only. The ownership may shrink without `remove`, where a program was
      too slow for its group; only then is each record checked.
    * A client that has failed for good is replaced by a new one, which goes on after the last record delivered.

    Args:
        config: librdkafka's properties.
        logger: where librdkafka logs; standard error where None.
    """

    COMMITTED: Final = OFFSET_STORED
    """Begin where the group has committed, else where auto.offset.reset says."""

    def __init__(self, config: Mapping[str, Any], logger: logging.Logger | None = None) -> None:
        self._config = dict(config) | ({} if logger is None else {"logger": logger})
        self._consumer = Consumer(self._config)
        self.ahead = ReadAhead()
        self._checked = Ownership()
        self._sought: dict[TopicPartition, int] = {}
        self._begun: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()

    @property
    def client(self) -> Consumer:
        """Librdkafka's consumer, for requests that have nothing to do with fetching."""
        return self._consumer

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._begun)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from the next connection on, also with a client that replaces this one."""
        self._consumer.set_sasl_credentials(username, password)
        self._config |= {"sasl.username": username, "sasl.password": password}

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
            self.ahead.drop(gone)
            self._consumer.incremental_unassign([KafkaPartition(*key) for key in gone])

    def take(self, most: int, waits_s: Iterable[float], ownership: Callable[[], Ownership]) -> list[Message]:
        """Return up to `most` records, those read ahead first; only if none are there, waits time after time."""
        found: list[Message] = []
        fetched: list[list[Message]] = []
        try:
            # A signal that comes during a call raises after it, before its value could be assigned: Ctrl-C would lose
            # the records. All in one call of C, they are in a list by then.
            found.extend(itertools.islice(self.ahead.records, most))
            if len(found) < most:
                for wait_s in (0.0,) if found else waits_s:
                    fetched.clear()
                    fetched.extend(map(self._consumer.consume, (most - len(found),), (wait_s,)))
                    if fetched[0]:
                        break
                found = found + fetched[0] if found else fetched[0]
            return self._deliverable(found, ownership) if found else found
        except KafkaException as error:
            self._replace_client(error.args[0])
            return found
        except BaseException:
            self.put_back(itertools.chain(found, *fetched))
            raise

    def read_ahead(self, most: int, waits_s: Iterable[float], ownership: Callable[[], Ownership]) -> None:
        """Hold up to `most` records in `ahead`, after those that are there; waits for the first ones as `take` does."""
        found: list[Message] = []
        try:
            found += self.take(most, waits_s, ownership)
            self.ahead.hold(found)
        except BaseException:
            self.ahead.clear()
            self.put_back(found)
            raise

    def put_back(self, messages: Iterable[Message]) -> None:
        """Deliver these again, which their program has not seen, and do not count them as delivered."""
        first: dict[TopicPartition, int] = {}
        for one in messages:
            if one.error() is None:
                first.setdefault(key_of_message(one), int(one.offset() or 0))
        for key, at in first.items():
            if key in self._begun:
                self.seek(key, at)

    def check_ahead(self, owned: Ownership) -> None:
        """Forget the records read ahead of partitions that are no longer owned."""
        if owned is not self._checked:
            self.ahead.keep_only(owned.partitions)

    def _deliverable(self, found: list[Message], ownership: Callable[[], Ownership]) -> list[Message]:
        # Checked after the wait: a partition given up meanwhile is not delivered.
        owned = ownership()
        if owned is not self._checked:
            if not self._begun.keys() <= owned.partitions:
                found = [one for one in found if one.error() is not None or key_of_message(one) in owned.partitions]
            else:
                self._checked = owned
        if self._sought:
            for one in found:
                self._sought.pop(key_of_message(one), None)
        last = found[-1].error() if found else None
        if last is not None and last.fatal():
            self._replace_client(last)
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """The offset after the last record delivered, or sought since; what has neither is left out."""
        asked = [KafkaPartition(*key) for key in self._begun]
        found = {(one.topic, one.partition): one.offset for one in self._consumer.position(asked)} if asked else {}
        found |= self._sought
        found |= {key: at for key, at in self.ahead.next_offsets().items() if key in self._begun}
        return {key: at for key, at in found.items() if at >= 0}

    def seek(self, key: TopicPartition, offset: int) -> None:
        """Go on with a partition at this offset.

        Raises:
            ConsumerError: the partition is not read.
        """
        if key not in self._begun:
            raise ConsumerError(f"{key[0]!r} partition {key[1]} is not assigned: seek() when it is")
        self.ahead.drop([key])
        # A seek fails while the first fetch is being prepared; removing and adding does not.
        self._consumer.incremental_unassign([KafkaPartition(*key)])
        self._consumer.incremental_assign([KafkaPartition(*key, offset)])
        if key in self._paused:
            self._consumer.pause([KafkaPartition(*key)])
        self._sought[key] = offset

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver nothing of these until `resume`."""
        these = [key for key in partitions if key in self._begun]
        ahead = self.ahead.next_offsets()
        for key in these:
            if key in ahead:
                self.seek(key, ahead[key])
        self._paused.update(these)
        self._consumer.pause([KafkaPartition(*key) for key in these])

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver them again."""
        these = [key for key in partitions if key in self._begun]
        self._paused.difference_update(these)
        self._consumer.resume([KafkaPartition(*key) for key in these])

    def close(self) -> None:
        """End the client."""
        self._begun.clear()
        self.ahead.clear()
        self._consumer.close()

    def _assign(self, begins: Mapping[TopicPartition, int], topics: Collection[str]) -> None:
        """Begin to read, after asking for the leaders of these topics."""
        try:
            self._ask_for_leaders(topics)
        finally:  # also after Ctrl-C: they count as read
            self._consumer.incremental_assign([KafkaPartition(*key, at) for key, at in begins.items()])
            self._consumer.pause([KafkaPartition(*key) for key in begins.keys() & self._paused])

    def _ask_for_leaders(self, topics: Collection[str]) -> None:
        """Ask for the leaders now: on its own, librdkafka waits half a second or more before it asks for a leader."""
        asked: Iterable[dict[str, str]] = ({"topic": topic} for topic in topics) if len(topics) <= _ONE_BY_ONE else [{}]
        with contextlib.suppress(KafkaException):  # asked again by librdkafka
            for which in asked:
                self._consumer.list_topics(**which, timeout=_LEADERS_S)

    def _replace_client(self, error: KafkaError) -> None:
        log.warning("fetching ended (%s): beginning again with %d partitions", error, len(self._begun))
        begins = self._begun | self.positions()
        self.ahead.clear()
        self._consumer.close()
        self._consumer = Consumer(self._config)
        self._assign(begins, {topic for topic, _ in begins})
