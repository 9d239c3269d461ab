"""Where partitions begin that have only a logical offset such as OFFSET_BEGINNING: requested before librdkafka would.

If a partition continues elsewhere while librdkafka's own request is under way, librdkafka repeats the request half a
second later, and continues at its answer: a seek would be undone.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.first_leaders import ask_for_leaders
from assignors.consumer.logical_offsets import TAIL
from assignors.planner.topics_and_members import TopicPartition

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 1.0
_ASKED_AGAIN_S: Final = 0.6  # librdkafka waits for 0.5 s


class ResolvedStarts:
    """The offsets at which partitions begin, and those partitions for which librdkafka asks by itself.

    Contract:
    * A logical offset stays as it is if no leader answers within a second, or no broker says within a second which one
      that is, and where the group's offset is meant.
    * What is noted here of a partition is also right if an interruption keeps the client from beginning or ending it.

    Attributes:
        given: the offset that the program gave for each partition, or the logical one of auto.offset.reset.
    """

    def __init__(self) -> None:
        self.given: dict[TopicPartition, int] = {}
        self._asked: set[TopicPartition] = set()  # librdkafka asks, and its request may be under way
        self._late: set[TopicPartition] = set()  # of these, those without a leader: it asks when there is one

    def begin(self, client: Consumer, given: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where these begin, in addition to those known; the leaders of new topics are requested first."""
        new_topics = {topic for topic, _ in given} - {topic for topic, _ in self.given}
        found = self._found(client, given, new_topics)
        self.given.update(given)  # last: after an interruption the leaders are requested again
        return found

    def begin_again(self, client: Consumer, begins: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return where a new client, which knows no leader, begins with all partitions."""
        self._asked.clear()
        self._late.clear()
        return self._found(client, begins, {topic for topic, _ in begins})

    def _found(
        self, client: Consumer, begins: Mapping[TopicPartition, int], new_topics: AbstractSet[str]
    ) -> dict[TopicPartition, int]:
        leaderless = ask_for_leaders(client, new_topics)
        known = begins.keys() - leaderless if leaderless is not None else set()
        logical = {key: begins[key] for key in known if _is_logical(begins[key])}
        answered = _resolved(client, logical)
        found = dict(begins) | (answered or {})
        self._asked.update(key for key, at in found.items() if at < 0)
        without_leader = begins.keys() - known | (set() if answered is None else logical.keys() - answered.keys())
        self._late.update(without_leader & self._asked)
        return found

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that are no longer read."""
        for key in partitions:
            self.given.pop(key, None)
            self._asked.discard(key)
            self._late.discard(key)

    def continues(self, client: Consumer, key: TopicPartition, offset: int) -> None:
        """Note that a partition will continue at this offset; wait for the answer that librdkafka still expects.

        A leader answers in order, so librdkafka has all earlier answers when the one to a later request is here. That
        request names all partitions, since a program may seek in thousands, one after another. Where a partition had no
        leader before, librdkafka asks up to half a second after it has one, so the request is repeated after that.
        """
        if key in self._asked:
            if client.position([KafkaPartition(*key)])[0].offset < 0:  # without a record since
                self._wait_for_answers(client)
            self._asked.discard(key)
            self._late.discard(key)
        if offset < 0:
            self._asked.add(key)

    def _wait_for_answers(self, client: Consumer) -> None:
        asked = dict.fromkeys(self._asked, OFFSET_END)
        answered = _resolved(client, asked)
        if answered and not self._late.isdisjoint(answered):
            time.sleep(_ASKED_AGAIN_S)
            answered = answered if _resolved(client, asked) is not None else None
        # Where requests fail, the next seek does not wait: a thousand seeks would.
        self._asked -= asked.keys() if answered is None else answered.keys()
        self._late = set(self._asked)


def _is_logical(offset: int) -> bool:
    return offset in {OFFSET_BEGINNING, OFFSET_END} or offset <= TAIL


def _resolved(client: Consumer, logical: Mapping[TopicPartition, int]) -> dict[TopicPartition, int] | None:
    """Return the offsets in the logs, of those partitions that have a leader; None if the request fails (KIP-79)."""
    asked = [
        KafkaPartition(*key, OFFSET_BEGINNING if at == OFFSET_BEGINNING else OFFSET_END) for key, at in logical.items()
    ]
    try:
        answers = client.offsets_for_times(asked, _TIMEOUT_S) if asked else []
    except KafkaException as error:
        log.info("where %d partitions begin was not answered (%s): the fetching client asks again", len(asked), error)
        return {} if error.args[0].code() == KafkaError._UNKNOWN_PARTITION else None  # noqa: SLF001 -- without leaders
    found = {(one.topic, one.partition): one.offset for one in answers if one.error is None and one.offset >= 0}
    # librdkafka's offset for n records before the end.
    return {key: max(0, at - max(0, TAIL - logical[key])) for key, at in found.items()}
