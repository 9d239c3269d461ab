"""The position of each partition before a call of librdkafka: a signal during the call drops the call's records."""

import threading
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaPartition

from assignors.planner.topics_and_members import TopicPartition

_POSITION_COSTS: Final = 4  # reading a record's partition costs this many times as much as asking for one position


class PositionsBefore:
    """The positions before the next call of `consume`.

    If the handler of a signal raises while confluent-kafka fetches, `consume` raises, and the records that it had taken
    from librdkafka are gone, but librdkafka's positions are after them.

    Contract:
    * `note` is called before each call, `received` after each one that returned; `forget` when partitions begin, end,
      or continue elsewhere.
    * Python runs handlers of signals in the main thread only, so other threads note nothing.

    Attributes:
        interrupted: whether the call was interrupted, and the records that it dropped are not delivered again yet. The
            positions stay as they are until then.
        noted: the positions; None if they are not known.
        later: the positions after records that have arrived since.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self.noted: list[KafkaPartition] | None = None
        self.later: dict[TopicPartition, int] = {}

    def note(self, client: Consumer, partitions: list[KafkaPartition]) -> None:
        """Ask for the positions, unless they are known."""
        if self.noted is None and threading.current_thread() is threading.main_thread():
            noted = client.position(partitions)
            self.later = {}
            self.noted = noted

    def received(self, messages: Sequence[Message]) -> None:
        """Record that these have arrived: the next call begins after them."""
        if self.noted is None or not messages:
            return
        if len(messages) * _POSITION_COSTS > len(self.noted):
            self.forget()
            return
        for one in messages:
            if one.error() is None:
                self.later[str(one.topic()), int(one.partition() or 0)] = int(one.offset() or 0) + 1

    def forget(self) -> None:
        """Ask again before the next call."""
        self.noted = None

    def dropped(self, client: Consumer) -> dict[TopicPartition, int | None]:
        """Return, for each partition that has another position now, the one before the call; None if it had none."""
        if self.noted is None:
            return {}
        before = {(one.topic, one.partition): one.offset for one in self.noted} | self.later
        now = client.position(self.noted)
        return {
            key: before[key] if before[key] >= 0 else None
            for one in now
            if one.offset >= 0 and before[key := (one.topic, one.partition)] != one.offset
        }
