"""The program's choice in `on_assign`: which of the assigned partitions it reads, and from where."""

from collections.abc import Collection, Mapping, Sequence

from confluent_kafka import OFFSET_INVALID, KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.consumed_offsets import key_of
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.fetching import Fetching
from assignors.consumer.logical_offsets import check_start
from assignors.planner.topics_and_members import TopicPartition


class AssignChoice:
    """What one callback of `on_assign` chooses; without a choice, all partitions from the group's offsets on.

    Contract: as in confluent-kafka, a refused call is a choice, too: after it only partitions of accepted calls are
    read. Unlike there, `assign` and `incremental_assign` are accepted in each protocol, and `assign` replaces what this
    callback has chosen: partitions of earlier callbacks stay.

    Attributes:
        made: whether the program has chosen.
        begins: the offset at which each partition begins.
        paused: the partitions that begin paused.
    """

    def __init__(self, offered: Collection[TopicPartition]) -> None:
        self._offered = frozenset(offered)
        self.made = False
        self.begins: dict[TopicPartition, int] = dict.fromkeys(offered, Fetching.COMMITTED)
        self.paused: set[TopicPartition] = set()

    def assign(self, wanted: Sequence[KafkaPartition], *, instead: bool) -> None:
        """Read these, instead of those chosen before or in addition.

        Raises:
            ConsumerError: a partition comes twice, is another member's, or cannot begin at its offset.
        """
        before = self.begins if self.made and not instead else {}
        self.made, self.begins = True, before
        begins = begins_of(wanted, before)
        check_assigned(begins, self._offered)
        self.begins = {**before, **begins}

    def unassign(self) -> None:
        """Read none."""
        self.made, self.begins = True, {}

    def chosen(self) -> dict[TopicPartition, int]:
        """Return the partitions of accepted calls, and where they begin."""
        return dict(self.begins) if self.made else {}

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Do not read these."""
        self.made, self.begins = True, {key: at for key, at in self.chosen().items() if key not in partitions}

    def begin_at(self, key: TopicPartition, offset: int) -> bool:
        """Begin at this offset; False if the partition is not one of these."""
        if key not in self.begins:
            return False
        check_start(key, offset)
        self.begins[key] = offset
        return True


def begins_of(wanted: Sequence[KafkaPartition], present: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return where each partition begins: without an offset where the group has committed.

    Raises:
        ConsumerError: a partition comes twice, is present already, or cannot begin at its offset.
    """
    begins: dict[TopicPartition, int] = {}
    for one in wanted:
        key = key_of(one)
        check_start(key, one.offset)
        if key in begins or key in present:
            code = KafkaError._CONFLICT if key in present else KafkaError._INVALID_ARG  # noqa: SLF001 -- librdkafka's own codes
            raise ConsumerError(f"{one.topic!r} partition {one.partition} is assigned twice", code)
        begins[key] = Fetching.COMMITTED if one.offset == OFFSET_INVALID else one.offset
    return begins


def check_assigned(wanted: Mapping[TopicPartition, int], assigned: Collection[TopicPartition]) -> None:
    """Check that the group has assigned these to this member.

    Raises:
        ConsumerError: it has not: another member may read them.
    """
    for topic, partition in wanted.keys() - frozenset(assigned):
        raise ConsumerError(
            f"{topic!r} partition {partition}: the group assigns, and has not assigned it to this member now (earlier "
            "partitions stay: in on_assign name those of its call); without a subscription assign() reads any partition"
        )
