"""The offsets at which a partition may begin."""

from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, KafkaError

from assignors.consumer.consumer_errors import ConsumerError
from assignors.planner.topics_and_members import TopicPartition

_LOGICAL: Final = frozenset({OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED})
TAIL: Final = -2000  # librdkafka's offset for n records before the end is -2000 - n


def check_start(key: TopicPartition, offset: int) -> None:
    """Check an offset before librdkafka does, which would drop the partition that was read before.

    Raises:
        ConsumerError: it is below 0, and none of librdkafka's constants.
    """
    if offset < 0 and offset not in _LOGICAL and offset > TAIL:
        raise ConsumerError(
            f"{key[0]!r} partition {key[1]}: offset {offset} is below 0 and not a constant such as OFFSET_BEGINNING",
            KafkaError._INVALID_ARG,  # noqa: SLF001 -- librdkafka's own code
        )
