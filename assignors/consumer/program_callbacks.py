"""The program's callbacks of a rebalance: `on_assign`, `on_revoke` and `on_lost`."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import TopicPartition as KafkaPartition

from assignors.consumer.consumer_errors import ArgumentError, ConsumerError
from assignors.consumer.interruptions import Once
from assignors.consumer.rebalance_events import Kind
from assignors.planner.topics_and_members import TopicPartition

OnChange = Callable[[Any, list[KafkaPartition]], object]
CallProgram = Callable[[Kind, frozenset[TopicPartition], Once], object]


class RunningCallback:
    """The callback that runs now; after an interruption at any step of its start or end there is none."""

    def __init__(self) -> None:
        self._running = threading.Lock()  # its `with` statement ends in C
        self._kind = Kind.ASSIGNED

    @property
    def kind(self) -> Kind | None:
        """The kind of its change; None if no callback runs."""
        return self._kind if self._running.locked() else None

    def run(self, kind: Kind, once: Once, callback: OnChange, *args: object) -> None:
        """Call the callback of a change of this kind, unless it was called."""
        self._kind = kind
        with self._running:
            once.call(callback, *args)


class ProgramCallbacks:
    """Calls the program's function of a change, with the consumer as its first argument.

    Contract:
    * It does not keep a dropped consumer alive, but the program's functions may: only the consumer may refer to it, and
      objects that outlive the consumer use `weakly`.
    * While a function runs, `refuse` raises: the calls that use it would wait for the function's return.

    Attributes:
        running: the function that runs now.
    """

    def __init__(self, consumer: object) -> None:
        self._consumer: Callable[[], object] = weakref.ref(consumer)
        self._callbacks: dict[Kind, OnChange | None] = {}
        self.running = RunningCallback()

    def set(self, on_assign: OnChange | None, on_revoke: OnChange | None, on_lost: OnChange | None) -> None:
        """Call these from now on; without `on_lost`, `on_revoke` is called instead."""
        self._callbacks = {Kind.ASSIGNED: on_assign, Kind.REVOKED: on_revoke, Kind.LOST: on_lost or on_revoke}

    def call(self, kind: Kind, partitions: frozenset[TopicPartition], once: Once) -> None:
        """Call the function of this change, if there is one, unless `once` has called it; its error is raised."""
        consumer, callback = self._consumer(), self._callbacks.get(kind)
        if consumer is not None and callback is not None:
            self.running.run(kind, once, callback, consumer, [KafkaPartition(*key) for key in sorted(partitions)])

    def hold(self, consumer: object) -> None:
        """Keep the consumer while it is closed: in a `__del__` in a cycle its weak references are cleared already."""
        self._consumer = lambda: consumer

    def let_go(self) -> None:
        """Keep the consumer no longer."""
        self._consumer = weakref.ref(self._consumer())

    def weakly(self) -> CallProgram:
        """Return `call` for objects that outlive the consumer: it has no effect when the consumer is gone."""
        return partial(_call, weakref.ref(self))

    def refuse(self, call: str) -> None:
        """Raise ConsumerError if a function runs, because this call would wait for its return."""
        if self.running.kind is not None:
            raise ConsumerError(f"{call} in a callback, whose return it would wait for: call it after that")


def _call(
    program: "weakref.ref[ProgramCallbacks]", kind: Kind, partitions: frozenset[TopicPartition], once: Once
) -> None:
    if (found := program()) is not None:
        found.call(kind, partitions, once)


def check_callbacks(**callbacks: OnChange | None) -> None:
    """Raise ArgumentError for an argument of `subscribe` that cannot be called."""
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise ArgumentError(f"subscribe({name}={callback!r}): need a function of a consumer and partitions")
