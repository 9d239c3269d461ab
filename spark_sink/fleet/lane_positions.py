"""Where each partition of a lane stands, and what was read of it and is not handed over. Pure, no I/O."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from assignors.fleet import FleetTopic
from spark_sink.ranges.batch_offset import Range, TopicPartition

Offsets = dict[TopicPartition, int]


class LanePositions:
    """The partitions of one lane and their positions; used by one thread.

    Partitions stand here under the label that the table has for their topic, and come from Kafka under its name.

    Contract:
    * What is handed over of a partition begins where the part before it ended, or where the partition was told to
      begin: no record is left out between, and none is handed over twice.
    * Nothing is taken of a partition that was not begun, and nothing at all while `stale`.

    Attributes:
        stale: what was read is not in the table and was forgotten; taking on would leave a hole.
    """

    def __init__(self) -> None:
        self.stale = False
        self._labels: dict[str, str] = {}
        self._topics: dict[str, FleetTopic] = {}
        self._stands: dict[TopicPartition, int | None] = {}
        self._read: dict[TopicPartition, tuple[int, int, int]] = {}  # begin, end, records

    @property
    def names(self) -> frozenset[str]:
        """The topics that are followed."""
        return frozenset(self._labels)

    @property
    def labels(self) -> Mapping[str, str]:
        """Their labels, by name."""
        return self._labels

    @property
    def records(self) -> int:
        """How many were taken and are not handed over."""
        return sum(records for _, _, records in self._read.values())

    def follow(self, labels: Mapping[FleetTopic, str]) -> set[str]:
        """Follow these topics from now on, and no others.

        Returns:
            The names that are new, or bear another label than before.
        """
        before, self._labels = self._labels, {topic.name: label for topic, label in labels.items()}
        # What was read of topics that leave is handed over with them.
        left = {key.topic: self._topics[key.topic] for key in self._read}
        self._topics = left | {label: topic for topic, label in labels.items()}
        self._stands = {key: at for key, at in self._stands.items() if key.topic in self._topics}
        return {name for name, label in self._labels.items() if before.get(name) != label}

    def key(self, name: str, partition: int) -> TopicPartition:
        """A partition by the label of its topic; by its name where it is not followed."""
        return TopicPartition(self._labels.get(name, name), partition)

    def holds(self, key: TopicPartition) -> bool:
        """Whether the partition was begun and not dropped."""
        return key in self._stands

    def begin(self, key: TopicPartition, at: int | None) -> None:
        """Take of this partition from there on; None for wherever its first record lies."""
        self._stands[key] = at

    def wants(self, name: str, partition: int, offset: int) -> TopicPartition | None:
        """The partition, where this record is to be taken: followed, begun, and not behind where it stands."""
        label = self._labels.get(name)
        if label is None or self.stale:
            return None
        key = TopicPartition(label, partition)
        if key not in self._stands:
            return None
        at = self._stands[key]
        # Behind: it came before its partition was told to go on further ahead.
        return None if at is not None and offset < at and key not in self._read else key

    def take(self, key: TopicPartition, offset: int) -> bool:
        """Count a wanted record as read.

        Returns:
            Whether it is the oldest of its partition that is not handed over.
        """
        at = self._stands[key]
        begin, _, records = self._read.get(key, (offset if at is None else at, 0, 0))
        self._read[key] = begin, offset + 1, records + 1
        return not records

    def reached(self, key: TopicPartition) -> int | None:
        """The offset after the last record taken of a partition that is held; None where nothing is known."""
        _, at, _ = self._read.get(key, (0, self._stands[key], 0))
        return at

    def positions(self) -> Iterator[tuple[str, int, int]]:
        """Name, partition and offset of each partition that stands at one."""
        names = self._names()
        for key, at in self._stands.items():
            if at is not None and key.topic in names:
                yield names[key.topic], key.partition, at

    def hand_over(self) -> tuple[list[Range], dict[str, FleetTopic]]:
        """What was read goes on its way into the table: its ranges, and their topics by label."""
        ranges = [Range(*key, begin, end) for key, (begin, end, _) in self._read.items()]
        self._stands |= {one.key: one.end for one in ranges if one.key in self._stands}
        self._read = {}
        return ranges, {one.topic: self._topics[one.topic] for one in ranges}

    def settle(
        self, ends: Mapping[TopicPartition, int], ahead: Mapping[TopicPartition, int]
    ) -> tuple[Offsets, Offsets]:
        """What was handed over is in the table; where the table is further than what was read, go on from there.

        What was read meanwhile and is in the table as well is left out by the next compare and swap.

        Args:
            ends: where what was handed over ends, by partition; also those of other lanes.
            ahead: where the table is.

        Returns:
            Where to go on reading, and how far the table is; both by the topic's name.
        """
        names = self._names()
        held = {key: ahead.get(key, end) for key, end in ends.items() if key in self._stands and key.topic in names}
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
        """What was read of these is not written, and nothing more is taken of them until they are begun again."""
        self._read = {key: read for key, read in self._read.items() if key.topic not in labels}
        self._stands = {key: at for key, at in self._stands.items() if key.topic not in labels}

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """These are another's now; what was read of them can still be handed over."""
        for key in partitions:
            self._stands.pop(key, None)

    def forget(self) -> None:
        """What was read is not in the table: take nothing more until all is begun again."""
        self._read = {}
        self.stale = True

    def clear(self) -> None:
        """Forget also where partitions stand."""
        self.forget()
        self._stands = {}

    def _names(self) -> dict[str, str]:
        return {label: name for name, label in self._labels.items()}


def _renamed(offsets: Offsets, names: Mapping[str, str]) -> Offsets:
    return {TopicPartition(names[key.topic], key.partition): at for key, at in offsets.items()}
