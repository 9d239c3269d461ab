"""Rare requests of a task about a log: its bounds, and whether its topic is still there. Each uses a new client."""

import contextlib
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from spark_sink.errors import FetchError
from spark_sink.kafka.client_property_names import librdkafka_config
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import TopicPartition

_QUESTION_S, _TOPIC_S = 10.0, 5.0
_STALE_LEADER_S, _BACKOFF_S = 30.0, 0.2


def log_bounds(key: TopicPartition, reach: int, settings: FetchSettings) -> tuple[int, int]:
    """Request the first and the last offset of a log, until its leader answers.

    A broker that was cut off and does not know its successor answers as a leader. Its log ends before the offsets
    that were read from the successor. An end before `reach` counts only if it does not change for a while.

    Args:
        key: the partition.
        reach: an offset that the log has come to, as far as is known.
        settings: of the task.

    Raises:
        FetchError: no leader answers for `poll_timeout_s`.
    """
    deadline = time.monotonic() + settings.poll_timeout_s
    believed = time.monotonic() + min(_STALE_LEADER_S, settings.poll_timeout_s)
    while True:
        # Each attempt uses a new client, because a client that has found no leader may cache that answer.
        with _client(settings) as asked:
            try:
                first, last = asked.get_watermark_offsets(KafkaPartition(*key), timeout=_QUESTION_S)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    place = f"{key.topic}/{key.partition}"
                    raise FetchError(f"{place}: its offsets cannot be asked for: {error}") from error
            else:
                if last >= reach or time.monotonic() > believed:
                    return first, last
        time.sleep(_BACKOFF_S)


def deleted(keys: list[TopicPartition], settings: FetchSettings) -> list[TopicPartition]:
    """Return the partitions that are no longer there; a topic without an answer counts as there."""
    found = []
    with _client(settings) as asked:
        for topic in {key.topic for key in keys}:
            try:
                seen = asked.list_topics(topic, timeout=_TOPIC_S).topics[topic]
            except KafkaException:
                continue
            gone = seen.error is not None and seen.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            own = [key for key in keys if key.topic == topic]
            found += [key for key in own if gone or (seen.error is None and key.partition not in seen.partitions)]
    return found


@contextlib.contextmanager
def _client(settings: FetchSettings) -> Iterator[Consumer]:
    consumer = Consumer(librdkafka_config(settings.kafka) | {"group.id": "none", "enable.auto.commit": False})
    try:
        yield consumer
    finally:
        consumer.close()
