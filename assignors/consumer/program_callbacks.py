"""The program's callbacks of a rebalance: `on_assign`, `on_revoke` and `on_lost`."""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.consumer_errors import ArgumentError, ConsumerError
from assignors.consumer.rebalance_events import Kind
from assignors.planner.topics_and_members import TopicPartition

OnChange = Callable[[Any, list[KafkaPartition]], object]


class ProgramCallbacks:
    """Calls the program's function of a change, with the consumer as its first argument.

    Contract:
    * It does not keep a dropped consumer alive, but the program's functions may: only the consumer may refer to it, and
      all that outlives the consumer takes `weakly`.
    * While a function runs, `refuse` raises: the calls that use it would wait for the function's return.
    """

    def __init__(self, consumer: object) -> None:
        self._consumer = weakref.ref(consumer)
        self._callbacks: dict[Kind, OnChange | None] = {}
        self._running = False

    def set(self, on_assign: OnChange | None, on_revoke: OnChange | None, on_lost: OnChange | None) -> None:
        """Call these from now on; without `on_lost`, `on_revoke` is called instead."""
        self._callbacks = {Kind.ASSIGNED: on_assign, Kind.REVOKED: on_revoke, Kind.LOST: on_lost or on_revoke}

    def call(self, kind: Kind, partitions: frozenset[TopicPartition]) -> None:
        """Call the function of this change, if there is one; its error is raised."""
        consumer, callback = self._consumer(), self._callbacks.get(kind)
        if consumer is None or callback is None:
            return
        self._running = True
        try:
            callback(consumer, [KafkaPartition(*key) for key in sorted(partitions)])
        finally:
            self._running = False

    def weakly(self) -> Callable[[Kind, frozenset[TopicPartition]], object]:
        """Return `call` for those that outlive the consumer: without effect when the consumer is gone."""
        return partial(_call, weakref.ref(self))

    def refuse(self, call: str) -> None:
        """Raise ConsumerError if a function runs, because this call would wait for its return."""
        if self._running:
            raise ConsumerError(f"{call} in a callback, whose return it would wait for: call it after that")


def _call(program: "weakref.ref[ProgramCallbacks]", kind: Kind, partitions: frozenset[TopicPartition]) -> None:
    if (found := program()) is not None:
        found.call(kind, partitions)


def check_callbacks(**callbacks: OnChange | None) -> None:
    """Raise ArgumentError for an argument of `subscribe` that cannot be called."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise ArgumentError(f"subscribe({name}={callback!r}): need a function of a consumer and partitions")
