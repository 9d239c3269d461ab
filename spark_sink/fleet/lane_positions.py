"""The position of each partition of a lane, and its records that are not handed over. Pure, no I/O."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from assignors.fleet import FleetTopic
from spark_sink.ranges.batch_offset import Range, TopicPartition

Offsets = dict[TopicPartition, int]


class LanePositions:
    """The partitions of one lane and their positions; used by one thread.

    Partitions have the table's label of their topic here; records from Kafka have the topic's name.

    Contract:
    * Each handed over range of a partition begins at the end of the previous one, or at the offset given to `begin`: no
      record is left out, and none is handed over twice.
    * No record is taken of a partition before `begin`, and none at all while `stale`.

    Attributes:
        stale: records that are not in the table were dropped; taking more would leave a hole.
    """

    def __init__(self) -> None:
        self.stale = False
        self._labels: dict[str, str] = {}
        self._topics: dict[str, FleetTopic] = {}
        self._stands: dict[TopicPartition, int | None] = {}
        self._written: dict[TopicPartition, int | None] = {}  # positions of the table, as last known
        self._read: dict[TopicPartition, tuple[int, int, int]] = {}  # begin, end, records
        self._log_ends: dict[TopicPartition, int] = {}  # of partitions that are read up to this end of their log

    @property
    def names(self) -> frozenset[str]:
        """The names of the followed topics."""
        return frozenset(self._labels)

    @property
    def labels(self) -> Mapping[str, str]:
        """Their labels, by name."""
        return self._labels

    @property
    def records(self) -> int:
        """Number of records that were taken and are not handed over."""
        return sum(records for _, _, records in self._read.values())

    def follow(self, labels: Mapping[FleetTopic, str]) -> set[str]:
        """Follow these topics from now on, and no others.

        Returns:
            The names that are new, or have another label than before.
        """
        before, self._labels = self._labels, {topic.name: label for topic, label in labels.items()}
        # Records read of topics that leave are still handed over.
        left = {key.topic: self._topics[key.topic] for key in self._read}
        self._topics = left | {label: topic for topic, label in labels.items()}
        self._stands = {key: at for key, at in self._stands.items() if key.topic in self._topics}
        self._log_ends = {key: at for key, at in self._log_ends.items() if key in self._stands}
        self._written = {key: at for key, at in self._written.items() if key.topic in self._topics}
        return {name for name, label in self._labels.items() if before.get(name) != label}

    def key(self, name: str, partition: int) -> TopicPartition:
        """Return a partition with the label of its topic, or with its name if it is not followed."""
        return TopicPartition(self._labels.get(name, name), partition)

    def holds(self, key: TopicPartition) -> bool:
        """Return whether the partition was begun and not dropped."""
        return key in self._stands

    def begin(self, key: TopicPartition, at: int | None) -> None:
        """Take records of this partition from this offset on; None for its first record."""
        self._stands[key] = at
        self._log_ends.pop(key, None)
        if not self.stale:
            self._written[key] = at

    def resume(self) -> None:
        """Take records again: all partitions were begun at positions of the table."""
        self.stale = False
        self._written |= self._stands

    def wants(self, name: str, partition: int, offset: int) -> TopicPartition | None:
        """Return the partition if this record is wanted: followed, begun, and not below the position; else None."""
        label = self._labels.get(name)
        if label is None or self.stale:
            return None
        key = TopicPartition(label, partition)
        if key not in self._stands:
            return None
        at = self._stands[key]
        # A record below the position was fetched before the position moved ahead.
        return None if at is not None and offset < at and key not in self._read else key

    def take(self, key: TopicPartition, offset: int) -> bool:
        """Count a wanted record as read.

        Returns:
            Whether it is the oldest record of its partition that is not handed over.
        """
        at = self._stands[key]
        begin, _, records = self._read.get(key, (offset if at is None else at, 0, 0))
        self._read[key] = begin, offset + 1, records + 1
        self._log_ends.pop(key, None)
        return not records

    def reach_end(self, name: str, partition: int, end: int) -> None:
        """Note that a partition was read to the end of its log; the last offsets before the end may not be records."""
        key = self.key(name, partition)
        if self.holds(key):
            self._log_ends[key] = end

    def reached(self, key: TopicPartition) -> int | None:
        """Return the offset after the last record taken of a held partition; None if it is unknown."""
        _, at, _ = self._read.get(key, (0, self._stands[key], 0))
        return at

    def positions(self) -> Iterator[tuple[str, int, int | None]]:
        """Yield name, partition and the table's position of each held partition; None if it is the log's first record.

        While `stale` it is the position last known.
        """
        names = self._names()
        if self.stale:
            yield from (
                (names[key.topic], key.partition, at) for key, at in self._written.items() if key.topic in names
            )
            return
        for key, stands in self._stands.items():
            # Not `stands`: records that are handed over may wait for a slow store, and until then they are unread.
            at = self._written.get(key, stands)
            if key in self._log_ends and key not in self._read and at == stands:
                at = max(stands or 0, self._log_ends[key])
            if key.topic in names:
                yield names[key.topic], key.partition, at

    def partitions(self) -> dict[str, list[int]]:
        """Return the numbers of the held partitions by topic's name, sorted."""
        names = self._names()
        found: dict[str, list[int]] = {}
        for key in sorted(self._stands):
            if key.topic in names:
                found.setdefault(names[key.topic], []).append(key.partition)
        return found

    def hand_over(self) -> tuple[list[Range], dict[str, FleetTopic]]:
        """Return the ranges of the records read so far, and their topics by label, for writing."""
        ranges = [Range(*key, begin, end) for key, (begin, end, _) in self._read.items()]
        self._stands |= {one.key: one.end for one in ranges if one.key in self._stands}
        self._read = {}
        return ranges, {one.topic: self._topics[one.topic] for one in ranges}

    def settle(
        self, ends: Mapping[TopicPartition, int], ahead: Mapping[TopicPartition, int]
    ) -> tuple[Offsets, Offsets]:
        """Record that the handed over records are in the table; continue from the table's position if it is further.

        The next compare and swap leaves out records that were read meanwhile and are also in the table.

        Args:
            ends: ends of the handed over ranges, by partition; also those of other lanes.
            ahead: positions of the table.

        Returns:
            Offsets at which to continue, and positions of the table; both by the topic's name.
        """
        names = self._names()
        held = {key: ahead.get(key, end) for key, end in ends.items() if key in self._stands and key.topic in names}
        self._written |= held
        onward: Offsets = {}
        for key in held.keys() & ahead.keys():
            _, read_to, _ = self._read.get(key, (0, self._stands[key] or 0, 0))
            if ahead[key] <= read_to:
                continue
            onward[key] = ahead[key]
            if key not in self._read:
                self._stands[key] = ahead[key]
        return _renamed(onward, names), _renamed(held, names)

    def leave_out(self, labels: Collection[str]) -> None:
        """Drop the records read of these labels, and take no more of them until they are begun again."""
        self._read = {key: read for key, read in self._read.items() if key.topic not in labels}
        self._stands = {key: at for key, at in self._stands.items() if key.topic not in labels}
        self._written = {key: at for key, at in self._written.items() if key.topic not in labels}

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions that another agent owns now; records read of them can still be handed over."""
        for key in partitions:
            self._stands.pop(key, None)
            self._written.pop(key, None)

    def forget(self) -> None:
        """Drop the records that are not in the table, and take no more until all partitions are begun again."""
        self._read = {}
        self.stale = True

    def clear(self) -> None:
        """Drop the records and the positions."""
        self.forget()
        self._stands = {}

    def _names(self) -> dict[str, str]:
        return {label: name for name, label in self._labels.items()}


def _renamed(offsets: Offsets, names: Mapping[str, str]) -> Offsets:
    return {TopicPartition(names[key.topic], key.partition): at for key, at in offsets.items()}
