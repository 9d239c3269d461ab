"""Batches of records on their way into the tables, in a thread beside the one that reads."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from assignors.fleet import FleetTopic
from spark_sink.errors import SparkSinkError
from spark_sink.fleet.table_writer import Landable
from spark_sink.lake.table_contract import DataFile
from spark_sink.ranges.batch_offset import Range, TopicPartition

TopicIds = Callable[[Collection[str]], Callable[[], Mapping[str, str]]]
"""Asks for the ids of topics as they are now, by name; what it returns waits for the answer."""


class Tables(Protocol):
    """What is needed of a `TableWriter`."""

    @property
    def shared(self) -> bool:
        """Whether all topics are in one table."""

    def apart(self, names: Iterable[str]) -> list[set[str]]:
        """Labels by the table that they are in."""

    def land(self, rows: Landable, labels: Collection[str]) -> Sequence[DataFile]:
        """Write files of one table."""

    def commit(self, files: Sequence[DataFile], ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        """Bring them in; where the table is elsewhere than at the end of a range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBatch:
    """Records that were read and are not in their tables yet.

    Attributes:
        rows: the records.
        ranges: what they are, by labels.
        topics: by label.
    """

    rows: Landable
    ranges: Sequence[Range]
    topics: Mapping[str, FleetTopic]


@dataclass(slots=True, kw_only=True)
class WriteOutcome:
    """What became of a batch.

    Attributes:
        rows: records that are in the tables now.
        ends: how far each partition has come of which the table took the records.
        ahead: where a table is further than the batch: another agent was there too.
        recreated: labels of topics that are other ones by now; nothing of them was written.
        refused: why a table took nothing, by label.
    """

    rows: int = 0
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    ahead: dict[TopicPartition, int] = field(default_factory=dict)
    recreated: set[str] = field(default_factory=set)
    refused: dict[str, Exception] = field(default_factory=dict)

    def at(self, key: TopicPartition) -> int | None:
        """Where the table has come to; None where it took nothing of this partition."""
        return self.ahead.get(key, self.ends.get(key))


class BatchWriter:
    """Writes batches into the tables of one source; used by one thread.

    A topic may have been recreated while it was read. librdkafka reads by name: where the new log has grown past the
    old position it just goes on, without an error. So their ids are asked for after the reading, while files are
    written: ids only ever change forward, one that is the same now was so when its records were read.

    Args:
        writer: of the tables.
        ids: asked for each batch.
    """

    def __init__(self, writer: Tables, ids: TopicIds) -> None:
        self._writer = writer
        self._ids = ids

    def write(self, batch: ReadBatch) -> WriteOutcome:
        """Write a batch into its tables; where each topic has a table, one that refuses holds up no other.

        Raises:
            FleetError: the ids cannot be asked for.
            TableError: the table of all topics refuses.
        """
        answer = self._ids({topic.name for topic in batch.topics.values()})
        written = WriteOutcome()
        landed: dict[frozenset[str], Sequence[DataFile]] = {}
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

    def _commit(
        self, batch: ReadBatch, labels: frozenset[str], files: Sequence[DataFile], written: WriteOutcome
    ) -> None:
        same = labels - written.recreated
        if not same:
            return
        if same != labels:
            files = self._writer.land(batch.rows, same)
        ranges = [one for one in batch.ranges if one.topic in same]
        written.ahead |= self._writer.commit(files, ranges)
        written.ends |= {one.key: one.end for one in ranges}
        written.rows += sum(file.rows for file in files)

    @contextmanager
    def _refusals(self, labels: Collection[str], written: WriteOutcome) -> Iterator[None]:
        try:
            yield
        except (SparkSinkError, OSError) as error:
            if self._writer.shared:
                raise
            written.refused |= dict.fromkeys(labels, error)


class BackgroundWriter:
    """Writes one batch at a time in a thread beside the one that reads; used by that one.

    Args:
        name: of its threads.
        bringer: does it.
    """

    def __init__(self, name: str, bringer: BatchWriter) -> None:
        self._name = name
        self._batch_writer = bringer
        self._under_way: Future[WriteOutcome] | None = None

    @property
    def busy(self) -> bool:
        """Whether a batch is being written, or its outcome was not asked for yet."""
        return self._under_way is not None

    def start(self, batch: ReadBatch) -> None:
        """Begin to write, while no other batch is being written; returns at once."""
        self._under_way = Future()
        # Not a pool: at the end of the process Python would wait for one that hangs in its storage.
        threading.Thread(target=self._run, args=(batch, self._under_way), name=self._name, daemon=True).start()

    def outcome(self, *, wait: bool = False) -> WriteOutcome | None:
        """The outcome of the batch, given once; None where no batch is being written, or it is not done yet.

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
