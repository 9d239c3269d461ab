"""Writes batches of records to the tables, in a thread separate from the reading one."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from assignors.fleet import FleetTopic
from spark_sink.errors import SparkSinkError
from spark_sink.fleet.decode_and_commit import Committed, LandedFiles
from spark_sink.fleet.table_writer import Landable
from spark_sink.ranges.batch_offset import Range, TopicPartition

TopicIds = Callable[[Collection[str]], Callable[[], Mapping[str, str]]]
"""Requests the current ids of topics, by name; the returned function waits for the answer."""


class Tables(Protocol):
    """The methods of `TableWriter` that a writer of batches needs."""

    @property
    def shared(self) -> bool:
        """Whether all topics are in one table."""

    def apart(self, names: Iterable[str]) -> list[set[str]]:
        """Group labels by table."""

    def land(self, rows: Landable, labels: Collection[str]) -> LandedFiles:
        """Write files of one table and its quarantine."""

    def commit(self, files: LandedFiles, ranges: Sequence[Range]) -> Committed:
        """Commit files of one table and its quarantine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBatch:
    """Records that were read and are not in their tables yet.

    Attributes:
        rows: the records.
        ranges: their ranges, with labels.
        topics: topics by label.
    """

    rows: Landable
    ranges: Sequence[Range]
    topics: Mapping[str, FleetTopic]


@dataclass(slots=True, kw_only=True)
class WriteOutcome:
    """The outcome of a batch.

    Attributes:
        rows: number of records that were added to the tables and their quarantines; not those that were there before.
        quarantined: number of these that could not be decoded.
        ends: position of each partition whose records were written.
        ahead: positions of tables that are further than the batch, because another agent wrote, too.
        recreated: labels of recreated topics, whose records were not written.
        refused: reasons of tables that refused, by label.
    """

    rows: int = 0
    quarantined: int = 0
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    ahead: dict[TopicPartition, int] = field(default_factory=dict)
    recreated: set[str] = field(default_factory=set)
    refused: dict[str, Exception] = field(default_factory=dict)

    def at(self, key: TopicPartition) -> int | None:
        """Return the table's position; None if it took no records of this partition."""
        return self.ahead.get(key, self.ends.get(key))


class BatchWriter:
    """Writes batches into the tables of one source; used by one thread.

    A topic may have been recreated while it was read. librdkafka reads by name: if the new log has grown past the old
    position, it continues without an error. So the ids are requested after the reading, while files are written: an id
    is never reused, so an unchanged id was the same when the records were read.

    Args:
        writer: writes the tables.
        ids: called for each batch.
    """

    def __init__(self, writer: Tables, ids: TopicIds) -> None:
        self._writer = writer
        self._ids = ids

    def write(self, batch: ReadBatch) -> WriteOutcome:
        """Write a batch to its tables; if each topic has its own table, a table that refuses stops no other.

        Raises:
            FleetError: the ids cannot be requested.
            TableError: the shared table refuses.
        """
        answer = self._ids({topic.name for topic in batch.topics.values()})
        written = WriteOutcome()
        landed: dict[frozenset[str], LandedFiles] = {}
        for labels in map(frozenset, self._writer.apart(batch.topics)):
            with self._refusals(labels, written):
                landed[labels] = self._writer.land(batch.rows, labels)
        now = answer()
        written.recreated = {
            label for label, topic in batch.topics.items() if now.get(topic.name, topic.id) != topic.id
        }
        for labels, files in landed.items():
            with self._refusals(labels, written):
                self._commit(batch, labels, files, written)
        return written

    def _commit(self, batch: ReadBatch, labels: frozenset[str], files: LandedFiles, written: WriteOutcome) -> None:
        same = labels - written.recreated
        if not same:
            return
        if same != labels:
            files = self._writer.land(batch.rows, same)
        ranges = [one for one in batch.ranges if one.topic in same]
        committed = self._writer.commit(files, ranges)
        written.ahead |= committed.ahead
        written.ends |= {one.key: one.end for one in ranges}
        written.rows += committed.rows
        written.quarantined += committed.quarantined

    @contextmanager
    def _refusals(self, labels: Collection[str], written: WriteOutcome) -> Iterator[None]:
        try:
            yield
        except (SparkSinkError, OSError) as error:
            if self._writer.shared:
                raise
            written.refused |= dict.fromkeys(labels, error)


class BackgroundWriter:
    """Writes one batch at a time in a background thread; used by the reading thread.

    Args:
        name: name of its threads.
        bringer: writes the batches.
    """

    def __init__(self, name: str, bringer: BatchWriter) -> None:
        self._name = name
        self._batch_writer = bringer
        self._under_way: Future[WriteOutcome] | None = None

    @property
    def busy(self) -> bool:
        """Whether a batch is being written, or its outcome was not read yet."""
        return self._under_way is not None

    def start(self, batch: ReadBatch) -> None:
        """Start writing; no other batch may be in progress. Returns immediately."""
        self._under_way = Future()
        # Not a pool, because at exit Python would wait for a thread that hangs in its storage.
        threading.Thread(target=self._run, args=(batch, self._under_way), name=self._name, daemon=True).start()

    def outcome(self, *, wait: bool = False) -> WriteOutcome | None:
        """Return the outcome of the batch, once; None if no batch is being written, or it is not complete.

        Raises:
            FleetError, TableError: as `BatchWriter.write`.
        """
        under_way = self._under_way
        if under_way is None or not (wait or under_way.done()):
            return None
        self._under_way = None
        return under_way.result()

    def _run(self, batch: ReadBatch, under_way: "Future[WriteOutcome]") -> None:
        try:
            under_way.set_result(self._batch_writer.write(batch))
        except BaseException as error:  # noqa: BLE001 -- raised again by `outcome`
            under_way.set_exception(error)
