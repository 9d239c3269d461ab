"""Finds leaders and first offsets of partitions before a client assigns them."""

import logging
from collections.abc import Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

log = logging.getLogger(__name__)

_ANSWER_S: Final = 0.5  # the other lanes of the source wait for it
_EARLIEST: Final = -2  # as a time in ListOffsets: the first offset of the log


def located(consumer: Consumer, partitions: Sequence[KafkaPartition]) -> list[KafkaPartition]:
    """Return the partitions to assign, with the first offset of their log instead of OFFSET_BEGINNING.

    librdkafka looks for leaders of assigned topics that it does not know once a second. Half a second later it requests
    the first offsets, with one request for each partition. This function requests all leaders at once, and the offsets
    with one request for each leader. The client keeps the leaders.

    Args:
        consumer: the client; it must not be a member of a group, whose subscription tells it the leaders.
        partitions: with their offsets, or OFFSET_BEGINNING.

    Returns:
        The same partitions; with unchanged offsets if a leader does not answer in time. Then librdkafka finds them as
        described above.
    """
    times = [KafkaPartition(one.topic, one.partition, _EARLIEST) for one in partitions]
    try:
        answer = consumer.offsets_for_times(times, _ANSWER_S)
    except KafkaException as error:
        log.debug("fleet: first offsets are not known: %s", error)
        return list(partitions)
    first = {(one.topic, one.partition): one.offset for one in answer if one.error is None and one.offset >= 0}
    return [
        KafkaPartition(one.topic, one.partition, first.get((one.topic, one.partition), OFFSET_BEGINNING))
        if one.offset == OFFSET_BEGINNING
        else one
        for one in partitions
    ]
