"""Publishes the records of quarantines to a Kafka topic, each once.

The quarantine of a table decides: a record is published after its commit. One Kafka transaction has some records and
the next offset of each of their partitions, which goes to a compacted topic. So a publisher that was killed continues
where it stopped, and consumers with `isolation.level=read_committed` see each record once.

A quarantine takes the records of a partition in the order of their offsets. So one offset a partition is enough.

A dead letter is larger than its record, so the topic may refuse it. Then a stub without the value takes its place, and
the others continue. A broker refuses a whole batch of records. So if each record of a refused batch may be small
enough by itself, the next attempt has smaller batches, in which large records are alone.
"""

import contextlib
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from assignors.clients import CompactedFeed, make_compacted_topic, whole_number
from assignors.errors import AssignorError
from spark_sink.errors import DeadLetterError
from spark_sink.formats.bad_values_quarantined import python_rows
from spark_sink.lake.table_addresses import Storage
from spark_sink.sink.quarantine.dead_letter_progress import HELD, PROGRESS, Published, encode_key, next_offsets
from spark_sink.sink.quarantine.dead_letter_records import Letter, letter, stub, wire_bytes
from spark_sink.sink.quarantine.quarantine_listing import lowest
from spark_sink.sink.quarantine.quarantine_version import Ends, Quarantine, without_topic

log = logging.getLogger(__name__)

_PART: Final = 10_000
_PART_BYTES: Final = 64 << 20
_TIMEOUT_S: Final = 60.0
_FLUSH_S: Final = 0.1
_LARGEST: Final = 1_000_000_000  # librdkafka's own bound, in bytes
_BATCH_BYTES: Final = 1_000_000  # librdkafka's default
_SMALLER: Final = (16_384, 1)  # sizes of batches after a refusal; with 1 each record is alone
_SMALL_PART: Final = 1000  # records of a transaction with small batches, which must not take a minute
_TOO_LARGE: Final = "raise the topic's `max.message.bytes` and run the command again"
_NAMED: Final = 3  # of the records whose values are left out, in a line of the log


class Sent(NamedTuple):
    """The outcome of a publication."""

    records: int
    """Published now."""
    stubs: int = 0
    """How many of them are published without the value, because the topic takes no record of this size."""

    def __str__(self) -> str:
        """Say it in a line of the command."""
        left_out = f", {self.stubs} of them without the value, which is too large for the topic" if self.stubs else ""
        return f"{self.records} records published{left_out}"


class DeadLetters:
    """Publishes quarantines to one topic. Of several publishers of a topic the last one started continues.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topic: the topic of the dead letters.
        group: the consumer group that read the records.

    Raises:
        DeadLetterError: a property is invalid, no broker answers, or there is no such topic.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str, group: str) -> None:
        self._topic = topic
        self._group = group
        self._failures: list[str] = []
        self._refused: set[int] = set()
        self._warned: set[str] = set()
        self._batch_bytes = whole_number(kafka.get("batch.size"), _BATCH_BYTES)
        # The topic decides how large a record may be: a dead letter is larger than its record.
        largest = {} if "message.max.bytes" in kafka else {"message.max.bytes": _LARGEST}
        self._config = {
            **kafka,
            **largest,
            # A topic's name has no slash, so no two publishers have the same id.
            "transactional.id": f"azimuth.dead-letters.{topic}/{group}",
            "enable.idempotence": True,
        }
        codec = kafka.get("compression.type", kafka.get("compression.codec", "none"))
        self._compressed = codec != "none"
        with _failing(topic):
            self._producer = HELD.made(Producer, self._config)
            if self._producer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].error is not None:
                raise DeadLetterError(
                    f"there is no topic {topic!r} on {kafka['bootstrap.servers']}, or this user may not describe it: "
                    "create it first"
                )
            make_compacted_topic(kafka, PROGRESS, HELD)
            # Ends the transaction of a publisher that was killed, so that the next offsets are complete.
            self._producer.init_transactions(_TIMEOUT_S)
            with CompactedFeed(kafka, PROGRESS, HELD) as feed:
                feed.refresh(_TIMEOUT_S, to_end=True)
                self._done = {name: at for name, at in feed.records.items() if name.topic == topic}

    def publish(self, found: Quarantine) -> Sent:
        """Publish the records of a quarantine that are not published yet.

        Records of the dead letters' own topic are left out. If agents read this topic, too, its dead letters come into
        quarantine, and each would be published as another dead letter, without an end.

        Raises:
            DeadLetterError: they cannot be published; the next attempt continues.
            TableError: the quarantine cannot be read.
        """
        records = stubs = 0
        while True:
            done = {name.key: at for name, at in self._done.items() if name.table == found.id}
            part = lowest(self._of_other_topics(found, done), {}, _PART, _PART_BYTES)
            if part is None or not part.num_rows:
                return Sent(records, stubs)
            rows = python_rows(part)
            while rows:
                now = rows if self._batch_bytes not in _SMALLER else rows[:_SMALL_PART]
                ends = {Published(self._topic, found.id, key): at for key, at in next_offsets(now).items()}
                with _failing(self._topic):
                    new = self._send_part(now, ends, found.name)
                if new is None:
                    continue
                self._done |= ends
                records, stubs, rows = records + len(now), stubs + new, rows[len(now) :]

    def _of_other_topics(self, found: Quarantine, done: Ends) -> Iterator[pa.Table]:
        for part in found.above(done, self._group):
            others = without_topic(part, self._topic)
            if len(others) < len(part) and found.id not in self._warned:
                self._warned.add(found.id)
                log.warning(
                    "%s has dead letters of topic %r, because agents read this topic, too; they are not published "
                    "again: leave the topic out of the topics and the pattern of the agents",
                    *(found.name, self._topic),
                )
            if len(others):
                yield others

    def _send_part(
        self, rows: Sequence[Mapping[str, Any]], ends: Mapping[Published, int], quarantine: str
    ) -> int | None:
        """Send records, with stubs instead of those that are too large.

        Each attempt finds at least one more record that is too large, and all larger ones with it.

        Returns:
            The number of stubs. None if nothing is sent, as only smaller batches show which records are too large.
        """
        letters = [letter(row, self._group) for row in rows]
        stubs: set[int] = set()
        while refused := self._send(letters, ends):
            too_large = {number for number in refused if wire_bytes(letters[number]) >= self._batch_bytes}
            if not too_large:
                self._use_smaller_batches()
                return None
            if repeated := too_large & stubs:
                place = letters[min(repeated)].place
                raise DeadLetterError(
                    f"topic {self._topic!r}: {place} is too large, also without its value: {_TOO_LARGE}"
                )
            large = self._as_large(letters, too_large)
            for number in large:
                letters[number] = stub(rows[number], self._group, quarantine)
            stubs |= large
        if stubs:
            places = [letters[number].place for number in sorted(stubs)]
            more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
            log.warning(
                "topic %r takes no record as large as %s%s: published without the value, which %s keeps",
                *(self._topic, ", ".join(places[:_NAMED]), more, quarantine),
            )
        return len(stubs)

    def _as_large(self, letters: Sequence[Letter], refused: set[int]) -> set[int]:
        """Return these letters and those that are at least as large; the size of compressed ones shows nothing."""
        if self._compressed:
            return refused
        least = min(wire_bytes(letters[number]) for number in refused)
        return {number for number, one in enumerate(letters) if wire_bytes(one) >= least}

    def _use_smaller_batches(self) -> None:
        self._batch_bytes = next(size for size in _SMALLER if size < self._batch_bytes)
        self._producer = HELD.made(Producer, {**self._config, "batch.size": self._batch_bytes})
        self._producer.init_transactions(_TIMEOUT_S)

    def _send(self, letters: Sequence[Letter], ends: Mapping[Published, int]) -> set[int]:
        """Write records and their next offsets in one transaction.

        Returns:
            Numbers of letters that were refused for the size of their batch. If there are any, nothing is written.
        """
        self._failures.clear()
        self._refused.clear()
        self._producer.begin_transaction()
        try:
            for number, one in enumerate(letters):
                self._produce(self._topic, one, number)
            for name, at in ends.items():
                value = json.dumps({"v": 1, "next": at}, separators=(",", ":")).encode()
                self._produce(PROGRESS, Letter("a next offset", encode_key(name), value, []))
            self._flush()
            if not self._refused:
                self._producer.commit_transaction(_TIMEOUT_S)
                return set()
        except (KafkaException, DeadLetterError):
            with contextlib.suppress(KafkaException):  # a fenced publisher has nothing to abort
                self._abort()
            raise
        self._abort()
        return set(self._refused)

    def _abort(self) -> None:
        """Abort the transaction.

        librdkafka's own abort waits for answers that only `flush` takes. Batches that were under way behind the refused
        one come back into the queue, one after another, and stay there; so the queue is emptied again and again.
        """
        deadline = time.monotonic() + _TIMEOUT_S
        self._producer.purge(in_flight=False)
        while self._producer.flush(_FLUSH_S) and time.monotonic() < deadline:
            self._producer.purge(in_flight=False)
        self._producer.abort_transaction(_TIMEOUT_S)

    def _flush(self) -> None:
        """Wait for all answers, or for the first refusal: librdkafka then keeps the rest until the abort."""
        deadline = time.monotonic() + _TIMEOUT_S
        while (left := self._producer.flush(_FLUSH_S)) and not (self._refused or self._failures):
            if time.monotonic() > deadline:
                self._failures.append(f"{left} records have no answer in {_TIMEOUT_S:g} s")
        if self._failures and not self._refused:
            raise DeadLetterError(f"topic {self._topic!r}: {self._failures[0]}")

    def _produce(self, topic: str, one: Letter, number: int | None = None) -> None:
        """Queue a record; none after a refusal, which ends the transaction.

        Args:
            topic: its topic.
            one: the record.
            number: of the letter; None for a next offset.
        """

        def failed(error: KafkaError) -> None:
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and number is not None:
                self._refused.add(number)
            else:
                self._failures.append(f"{one.place}: {error.str()}")

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed(error)

        while not (self._refused or self._failures):
            try:
                self._producer.produce(topic, one.value, one.key, headers=one.headers, on_delivery=delivered)
            except BufferError:  # its queue is full
                self._producer.poll(1.0)
            except KafkaException as error:
                failed(error.args[0])
            else:
                self._producer.poll(0)
                return


class Publisher:
    """Publishes the quarantines of tables to one topic, those of each consumer group by a client of its own.

    Args:
        kafka: librdkafka's properties, at least `bootstrap.servers`.
        topic: the topic of the dead letters.
    """

    def __init__(self, kafka: Mapping[str, Any], topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._letters: dict[str, DeadLetters] = {}
        self._versions: dict[str, int] = {}

    def publish(self, table: str, group: str, storage: Storage | None = None) -> Sent:
        """Publish the records in the quarantine of a table that are not published yet.

        Args:
            table: address of the table.
            group: the consumer group that wrote it.
            storage: options of the object store.

        Raises:
            DeadLetterError: they cannot be published; the next call continues.
            TableError: the quarantine cannot be read.
        """
        found = Quarantine.of(table, storage)
        if found is None or self._versions.get(found.id) == found.version:
            return Sent(0)
        if group not in self._letters:
            self._letters[group] = DeadLetters(self._kafka, self._topic, group)
        try:
            sent = self._letters[group].publish(found)
        except DeadLetterError:
            del self._letters[group]  # the client may be unusable
            raise
        self._versions[found.id] = found.version
        return sent


@contextlib.contextmanager
def _failing(topic: str) -> Iterator[None]:
    try:
        yield
    except AssignorError as error:
        raise DeadLetterError(str(error)) from error
    except KafkaException as error:
        code = error.args[0]
        if code.code() in {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH}:  # noqa: SLF001 -- its name begins so
            raise DeadLetterError(f"topic {topic!r}: another publisher of this topic and group has started") from error
        raise DeadLetterError(f"topic {topic!r}: {code.str()}") from error
