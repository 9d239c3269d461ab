"""Checks that a partition's log is the one that was read before: a topic may be deleted and recreated.

Topic ids (KIP-516) show this. Brokers before 2.8 have none; there the only sign is a log that ends before the position.
"""

from collections.abc import Callable, Iterable, Mapping

from spark_sink.errors import DataLossError
from spark_sink.ranges.batch_offset import Offset, TopicPartition
from spark_sink.source.group_contract import Membership

GRACE_S = 10.0  # a newly elected leader may not know the committed end of its log yet (KIP-207)
_IDENTITY_S = 5.0


class LogContinuity:
    """The topic ids seen so far, and the partitions whose log ends before the position.

    The tasks compare the topic ids again after reading, so a topic that is recreated between planning and reading fails
    the batch; this check finds it before the next batch.

    Args:
        group: returns topic ids.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, group: Membership, clock: Callable[[], float]) -> None:
        self._group = group
        self._clock = clock
        self._identities: dict[str, str] = {}
        self._checked_at = 0.0
        self._short_since: dict[TopicPartition, float] = {}

    @property
    def doubtful(self) -> bool:
        """Whether a log ends before the position, but for less than `GRACE_S`."""
        return bool(self._short_since)

    @property
    def due(self) -> bool:
        """Whether the last check of all topic ids was some seconds ago."""
        return self._clock() - self._checked_at >= _IDENTITY_S

    def check_identities(self, keys: Iterable[TopicPartition], previous: Offset, *, every: bool) -> None:
        """Compare the ids of topics with those seen before, here or in the offset of the last batch.

        Args:
            keys: partitions of the topics.
            previous: the offset of the last batch.
            every: whether these are all assigned partitions.

        Raises:
            DataLossError: a topic has another id now.
        """
        if every:
            self._checked_at = self._clock()
        now = self._group.identities({key.topic for key in keys})
        for topic, identity in sorted(now.items()):
            known = self._identities.get(topic) or previous.identities.get(topic)
            if known not in {None, identity}:
                raise DataLossError(
                    f"{topic}: the topic was deleted and recreated (id {known} became {identity}), so its offsets mean "
                    "other records now. Use a new group and table for it"
                )
        self._identities |= now

    def identities_of(self, offset: Offset) -> dict[str, str]:
        """The known ids of the topics in an offset, sorted by topic."""
        topics = sorted({key.topic for key in offset.ranges})
        return {topic: self._identities[topic] for topic in topics if topic in self._identities}

    def check_ends(self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """Compare the ends of logs with the positions.

        Raises:
            DataLossError: a log has ended before the position for `GRACE_S`.
        """
        now = self._clock()
        short = {key for key, at in positions.items() if ends.get(key, at) < at}
        self._short_since = {key: self._short_since.get(key, now) for key in short}
        for key, since in self._short_since.items():
            if now - since >= GRACE_S:
                raise DataLossError(
                    f"{key.topic}/{key.partition}: offset {positions[key]} is next, but the log ends at {ends[key]}: "
                    "was the topic deleted and recreated, or does it begin (startingOffsets) past its end? Use a new "
                    "group and table for it"
                )
