"""What a consumer knows of the offsets that its group has."""

from collections import Counter
from collections.abc import Collection, Mapping

from assignors.clients.log_offsets import Offset, OffsetWithMetadata
from assignors.planner.topics_and_members import TopicPartition

Offsets = Mapping[TopicPartition, Offset]


class GroupOffsets:
    """The offsets of a group, as far as this consumer has committed them, or asked for them when a partition began."""

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, Offset] = {}
        self._accepted: dict[TopicPartition, Offset] = {}
        self._sent_outside: Counter[TopicPartition] = Counter()
        self._of_group: dict[TopicPartition, Offset] = {}  # kept as in librdkafka when another member owns a partition

    def uncommitted(self, offsets: Offsets) -> dict[TopicPartition, Offset]:
        """Return these offsets without those that equal the last committed ones; metadata is not compared."""
        done = self._committed
        return {key: at for key, at in offsets.items() if key not in done or _differ(done[key], at)}

    def ahead(self, offsets: Offsets) -> dict[TopicPartition, Offset]:
        """Return only the offsets at or after the group's: after a seek back, progress must not lower an offset.

        As in librdkafka, the last commit before a revocation is not filtered.
        """
        known = self._of_group
        return {key: at for key, at in offsets.items() if key not in known or not _is_behind(at, known[key])}

    def note(self, offsets: Offsets) -> None:
        """Record what another client has committed for this consumer."""
        self._committed.update(offsets)
        self._of_group.update(offsets)

    def note_sent(self, offsets: Offsets) -> None:
        """Record what another client sends for this consumer; it may be refused."""
        self._sent_outside.update(offsets.keys())
        self.commit_again(offsets)
        self._of_group.update(offsets)

    def note_answer(self, offsets: Offsets, refused: Collection[TopicPartition]) -> None:
        """Record the answer to the oldest of these requests. Only the answer to the newest shows what the group has."""
        for key, at in offsets.items():
            if self._sent_outside[key] > 0:  # else a synchronous call, which is noted where it was made
                self._sent_outside[key] -= 1
                if key not in refused and not self._sent_outside[key]:
                    self._committed.setdefault(key, at)  # else a synchronous call has come after the request

    def begin(self, partitions: Collection[TopicPartition], offsets: Offsets) -> None:
        """Record the offsets that the group has of partitions that begin; empty if they are not known."""
        for key in partitions:
            self._of_group.pop(key, None)
        self._of_group.update(offsets)
        self._accepted |= offsets

    def accepted(self) -> dict[TopicPartition, Offset]:
        """Return the last committed offsets that are known, for reports; a later commit may have failed."""
        return dict(self._accepted)

    def note_accepted(self, offsets: Offsets) -> None:
        """Record for reports what the group has accepted."""
        self._accepted.update(offsets)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the last offsets of partitions that another member commits from now on."""
        self.commit_again(partitions)
        for key in partitions:
            self._accepted.pop(key, None)

    def commit_again(self, partitions: Collection[TopicPartition]) -> None:
        """Forget that the offsets of these partitions are committed, as a request may change them without an answer."""
        for key in partitions:
            self._committed.pop(key, None)


def _is_behind(one: Offset, other: Offset) -> bool:
    """Compare as librdkafka does (KIP-320): by leader epoch, or by offset if the epochs are equal or one is unknown."""
    this, that = OffsetWithMetadata.of(one), OffsetWithMetadata.of(other)
    if min(this.leader_epoch, that.leader_epoch) >= 0 and this.leader_epoch != that.leader_epoch:
        return this.leader_epoch < that.leader_epoch
    return this.offset < that.offset


def _differ(one: Offset, other: Offset) -> bool:
    return OffsetWithMetadata.of(one).offset != OffsetWithMetadata.of(other).offset
