"""Fetching by librdkafka, of owned partitions only."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from confluent_kafka import KafkaException, Message

from assignors.consumer.read_ahead import is_read, key_of_message
from assignors.consumer.read_partitions import ReadPartitions
from assignors.member.ownership import Ownership

_MOST_AHEAD: Final = 10_000
_RECORDS_PER_POSITION: Final = 4  # the position of a partition costs as much as 0.3 to 1 record


class Fetching(ReadPartitions):
    """Takes records of the partitions that are read, for the program or to be read ahead.

    Contract:
    * `take` delivers records of owned partitions only. The ownership may shrink without `remove` if a program was too
      slow for its group; only then is each record checked.
    * Callbacks of the configuration are noted in `callbacks`; they end the wait for records, and `ahead.interrupted` is
      set until they are called.
    """

    @property
    def fewest_ahead(self) -> int:
        """The least number of records for which it pays to ask for the positions of all partitions first."""
        return min(_RECORDS_PER_POSITION * len(self._asked), _MOST_AHEAD)

    def take(self, most: int, waits_s: Iterable[float], ownership: Callable[[], Ownership]) -> list[Message]:
        """Return up to `most` records, first those read ahead; wait for each time in turn only if there are none."""
        self.redeliver_left()  # of another thread, whose handling of an interruption was interrupted
        found: list[Message] = []
        fetched: list[list[Message]] = []
        self.ahead.join_batches()
        try:
            # A signal during a call raises after the call, before its value is assigned, so Ctrl-C would lose the
            # records. This single call into C has put them into a list by then.
            found.extend(itertools.islice(self.ahead.records, most))
            if len(found) < most:
                self._before.note(self._consumer, self._asked)
                for wait_s in (0.0,) if found else waits_s:
                    fetched.clear()
                    fetched.extend(map(self._consumer.consume, (most - len(found),), (wait_s,)))
                    if self._came:
                        self.ahead.interrupt()  # ends the wait for records
                    if fetched[0]:
                        self._before.received(fetched[0])
                        break
                found = found + fetched[0] if found else fetched[0]
            return self.deliverable(found, ownership) if found else found
        except KafkaException as error:
            self._replace_client(error.args[0])
            return found
        except BaseException:
            self.ahead.interrupted = self._before.interrupted = True
            self._left.extend((found, *fetched))
            self.redeliver_left()
            raise

    def read_ahead(self, most: int, waits_s: Iterable[float], ownership: Callable[[], Ownership]) -> None:
        """Add up to `most` records to `ahead`; wait for the first ones as `take` does."""
        found: list[Message] = []
        try:
            found += self.take(most, waits_s, ownership)
            self.ahead.hold(found)
        except BaseException:
            self.ahead.interrupted = True
            self._left.append(found)
            self.redeliver_left()
            raise

    def read_batches(self, size: int, count: int, ownership: Callable[[], Ownership]) -> None:
        """Add up to `count` batches of fetched records to `ahead`, which is empty; a short one is the last.

        librdkafka fills the lists that the program gets: other lists would access each record twice, 5 % of the time.
        """
        fetched: list[list[Message]] = []

        def sizes() -> Iterator[int]:
            yield size
            while len(fetched) < count and len(fetched[-1]) == size:
                yield size

        try:
            self._before.note(self._consumer, self._asked)
            # In one call, for the reason that `take` gives: each list is in `fetched` before `sizes` continues.
            fetched.extend(map(self._consumer.consume, sizes(), itertools.repeat(0.0)))
            if self._came:
                self.ahead.interrupt()
            if len(fetched) > 1:
                self._before.forget()
            else:
                self._before.received(fetched[0])
            self.ahead.hold_batches([self.deliverable(batch, ownership) for batch in fetched], size)
        except KafkaException as error:
            self.keep_fetched(fetched, size, error)
        except BaseException:
            self.ahead.interrupted = self._before.interrupted = True
            self._left.extend(fetched)
            self.redeliver_left()
            raise

    def listen(self, ownership: Callable[[], Ownership]) -> None:
        """Let the client make its callbacks while `ahead` has records; what it returns comes after those."""
        fetched: list[list[Message]] = []
        try:
            self._before.note(self._consumer, self._asked)
            fetched.extend(map(self._consumer.consume, (max(1, self.ahead.batch_size),), (0.0,)))
            self._before.received(fetched[0])
            self.ahead.put_last(self.deliverable(fetched[0], ownership))
        except KafkaException as error:
            self._replace_client(error.args[0])
        except BaseException:
            self.ahead.interrupted = self._before.interrupted = True
            self._left.extend(fetched)
            self.redeliver_left()
            raise

    def keep_fetched(self, batches: list[list[Message]], size: int, error: KafkaException) -> None:
        """Hold the batches that were fetched before this error of librdkafka's client, and replace the client."""
        self.ahead.hold_batches(batches, size)
        self._replace_client(error.args[0])

    def check_ahead(self, owned: Ownership) -> None:
        """Drop the records in `ahead` whose partition is no longer owned."""
        if owned is not self._checked:
            self.ahead.keep_only(owned.partitions)

    def deliverable(self, found: list[Message], ownership: Callable[[], Ownership]) -> list[Message]:
        """Return those of owned partitions; replace the client if the last one is a fatal error."""
        # Checked after the wait, because a partition may have been revoked during it.
        owned = ownership()
        if owned is not self._checked:
            if not self._begun.keys() <= owned.partitions:
                found = [one for one in found if not is_read(one) or key_of_message(one) in owned.partitions]
            else:
                self._checked = owned
        last = found[-1].error() if found else None
        if last is not None and last.fatal():
            self._replace_client(last)
        return found
