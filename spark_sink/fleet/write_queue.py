"""What was read, on its way into the tables: beside the reading, in a thread of its own."""

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
class Parcel:
    """Records that were read, and have to come into the tables.

    Attributes:
        rows: the records.
        ranges: what they are, by labels.
        topics: by label.
    """

    rows: Landable
    ranges: Sequence[Range]
    topics: Mapping[str, FleetTopic]


@dataclass(slots=True, kw_only=True)
class Brought:
    """What became of a parcel.

    Attributes:
        rows: records that are in the tables now.
        ends: how far each partition has come of which the table took the records.
        ahead: where a table is further than the parcel: another agent was there too.
        anew: labels of topics that are other ones by now; nothing of them was brought in.
        refused: what tables said that took nothing, by label.
    """

    rows: int = 0
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    ahead: dict[TopicPartition, int] = field(default_factory=dict)
    anew: set[str] = field(default_factory=set)
    refused: dict[str, Exception] = field(default_factory=dict)

    def at(self, key: TopicPartition) -> int | None:
        """Where the table has come to; None where it took nothing of this partition."""
        return self.ahead.get(key, self.ends.get(key))


class Bringer:
    """Brings parcels into the tables of one source; used by one thread.

    Topics may have been made anew while they were read. librdkafka reads by name: where the new log has grown past the
    old position it just goes on, without an error. So their ids are asked for after the reading, while files are
    written: ids only ever change forward, one that is the same now was so when its records were read.

    Args:
        writer: of the tables.
        ids: asked for each parcel.
    """

    def __init__(self, writer: Tables, ids: TopicIds) -> None:
        self._writer = writer
        self._ids = ids

    def bring_in(self, parcel: Parcel) -> Brought:
        """Bring a parcel into its tables; where each topic has a table, one that refuses holds up no other.

        Raises:
            FleetError: the ids cannot be asked for.
            TableError: the table of all topics refuses.
        """
        answer = self._ids({topic.name for topic in parcel.topics.values()})
        brought = Brought()
        landed: dict[frozenset[str], Sequence[DataFile]] = {}
        for labels in map(frozenset, self._writer.apart(parcel.topics)):
            with self._refusals(labels, brought):
                landed[labels] = self._writer.land(parcel.rows, labels)
        now = answer()
        brought.anew = {label for label, topic in parcel.topics.items() if now.get(topic.name, topic.id) != topic.id}
        for labels, files in landed.items():
            with self._refusals(labels, brought):
                self._commit(parcel, labels, files, brought)
        return brought

    def _commit(self, parcel: Parcel, labels: frozenset[str], files: Sequence[DataFile], brought: Brought) -> None:
        same = labels - brought.anew
        if not same:
            return
        if same != labels:
            files = self._writer.land(parcel.rows, same)
        ranges = [one for one in parcel.ranges if one.topic in same]
        brought.ahead |= self._writer.commit(files, ranges)
        brought.ends |= {one.key: one.end for one in ranges}
        brought.rows += sum(file.rows for file in files)

    @contextmanager
    def _refusals(self, labels: Collection[str], brought: Brought) -> Iterator[None]:
        try:
            yield
        except (SparkSinkError, OSError) as error:
            if self._writer.shared:
                raise
            brought.refused |= dict.fromkeys(labels, error)


class Carrier:
    """Has one parcel at a time brought in, beside the thread that reads; used by that thread.

    Args:
        name: of its threads.
        bringer: does it.
    """

    def __init__(self, name: str, bringer: Bringer) -> None:
        self._name = name
        self._bringer = bringer
        self._under_way: Future[Brought] | None = None

    @property
    def busy(self) -> bool:
        """Whether a parcel is under way, or nobody has asked yet what became of it."""
        return self._under_way is not None

    def carry(self, parcel: Parcel) -> None:
        """Begin, while nothing else is under way; returns at once."""
        self._under_way = Future()
        # Not a pool: at the end of the process Python would wait for one that hangs in its storage.
        threading.Thread(target=self._run, args=(parcel, self._under_way), name=self._name, daemon=True).start()

    def arrived(self, *, wait: bool = False) -> Brought | None:
        """What became of the parcel, told once; None where nothing is under way, or not there yet.

        Raises:
            FleetError, TableError: as `Bringer.bring_in`.
        """
        under_way = self._under_way
        if under_way is None or not (wait or under_way.done()):
            return None
        self._under_way = None
        return under_way.result()

    def _run(self, parcel: Parcel, under_way: "Future[Brought]") -> None:
        try:
            under_way.set_result(self._bringer.bring_in(parcel))
        except BaseException as error:  # noqa: BLE001 -- whoever asks for it gets it
            under_way.set_exception(error)
