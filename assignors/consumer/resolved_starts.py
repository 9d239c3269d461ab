"""Where partitions begin that have only a logical offset such as OFFSET_BEGINNING: requested before librdkafka would.

If a partition continues elsewhere while librdkafka's own request is under way, librdkafka repeats the request half a
second later, and continues at its answer: a seek would be undone.
"""

import logging
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.first_leaders import ask_for_leaders
from assignors.consumer.logical_offsets import TAIL
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 1.0


class ResolvedStarts:
    """The offsets at which partitions begin, and those partitions for which librdkafka asks by itself.

    Contract:
    * A logical offset stays as it is if no leader answers within a second, and where the group's offset is meant.
    * What is noted here of a partition is also right if an interruption keeps the client from beginning or ending it.

    Attributes:
        given: the offset that the program gave for each partition, or the logical one of auto.offset.reset.
    """

    def __init__(self) -> None:
        self.given: dict[TopicPartition, int] = {}
        self._asked: set[TopicPartition] = set()  # librdkafka asks, and its request may be under way

    def begin(self, client: Consumer, given: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where these begin, in addition to those known; the leaders of new topics are requested first."""
        new_topics = {topic for topic, _ in given} - {topic for topic, _ in self.given}
        found = self._found(client, given, new_topics)
        self.given.update(given)  # last: after an interruption the leaders are requested again
        return found

    def begin_again(self, client: Consumer, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where a new client, which knows no leader, begins with all partitions."""
        self._asked.clear()
        return self._found(client, begins, {topic for topic, _ in begins})

    def _found(
        self, client: Consumer, begins: Mapping[TopicPartition, int], new_topics: AbstractSet[str]
    ) -> dict[TopicPartition, int]:
        leaderless = ask_for_leaders(client, new_topics)
        logical = {key: at for key, at in begins.items() if _is_logical(at) and key not in leaderless}
        found = dict(begins) | _resolved(client, logical)
        self._asked.update(key for key, at in found.items() if at < 0)
        return found

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that are no longer read."""
        for key in partitions:
            self.given.pop(key, None)
            self._asked.discard(key)

    def continues(self, client: Consumer, key: TopicPartition, offset: int) -> None:
        """Note that a partition will continue at this offset; wait for the answer that librdkafka still expects.

        A leader answers in order, so librdkafka has all earlier answers when the one to a later request is here. That
        request names all partitions, since a program may seek in thousands, one after another.
        """
        if key in self._asked:
            if client.position([KafkaPartition(*key)])[0].offset < 0:  # without a record since
                _resolved(client, dict.fromkeys(self._asked, OFFSET_END))
                self._asked.clear()
            self._asked.discard(key)
        if offset < 0:
            self._asked.add(key)


def _is_logical(offset: int) -> bool:
    return offset in {OFFSET_BEGINNING, OFFSET_END} or offset <= TAIL


def _resolved(client: Consumer, logical: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the offsets in the logs, of those partitions whose leaders answer in time (ListOffsets, KIP-79)."""
    asked = [
        KafkaPartition(*key, OFFSET_BEGINNING if at == OFFSET_BEGINNING else OFFSET_END) for key, at in logical.items()
    ]
    try:
        answers = client.offsets_for_times(asked, _TIMEOUT_S) if asked else []
    except KafkaException as error:
        log.info("where %d partitions begin was not answered (%s): the fetching client asks again", len(asked), error)
        return {}
    found = {(one.topic, one.partition): one.offset for one in answers if one.error is None and one.offset >= 0}
    # librdkafka's offset for n records before the end.
    return {key: max(0, at - max(0, TAIL - logical[key])) for key, at in found.items()}
