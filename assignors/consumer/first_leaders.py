"""Asks for the leaders of partitions as soon as they are read.

Librdkafka itself waits half a second or more before it requests a leader.
"""

import time
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from confluent_kafka import Consumer, KafkaException

from assignors.planner.topics_and_members import TopicPartition

_TIMEOUT_S: Final = 1.0
_ONE_BY_ONE: Final = 8  # metadata of more topics is requested at once, with that of all other topics


def ask_for_leaders(client: Consumer, topics: AbstractSet[str]) -> set[TopicPartition] | None:
    """Request the leaders of these topics, for at most a second; without an answer librdkafka asks again.

    Returns:
        the partitions that have no leader now; None if no broker has answered in time.
    """
    asked: Iterable[dict[str, str]] = ({"topic": topic} for topic in topics) if len(topics) <= _ONE_BY_ONE else [{}]
    until = time.monotonic() + _TIMEOUT_S
    leaderless: set[TopicPartition] = set()
    for which in asked:
        try:
            known = client.list_topics(**which, timeout=max(0.0, until - time.monotonic())).topics
        except KafkaException:
            return None
        for topic in known.keys() & topics:
            leaders = known[topic].partitions.items()
            leaderless.update((topic, number) for number, one in leaders if one.leader < 0)
    return leaderless
