"""Partitions that the program assigns itself, without a membership."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException

from assignors.clients.log_offsets import Offset
from assignors.consumer.background_calls import start_thread
from assignors.consumer.consumed_offsets import kafka_partitions
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.fetching import Fetching
from assignors.member.ownership import Ownership
from assignors.planner.topics_and_members import TopicPartition


class ManualAssignment:
    """Takes the place of a member while the program assigns partitions by `assign`.

    Contract:
    * It is in no group: another consumer may read the same partitions. Brokers accept its commits while the group has
      no members.
    * `close` ends it; `on_revoked` is called first.

    Args:
        fetching: its client commits.
        on_revoked: called with all partitions at the end; it may wait.
        tick: called every `tick_s` seconds, in a thread; it is the clock of automatic commits and callbacks.
        tick_s: None for never.
    """

    failed: Final = None
    fatal: Final = False

    def __init__(
        self,
        fetching: Fetching,
        on_revoked: Callable[[frozenset[TopicPartition]], object],
        *,
        tick: Callable[[], object],
        tick_s: float | None,
    ) -> None:
        self._fetching = fetching
        self._on_revoked = on_revoked
        self._tick = tick
        self._tick_s = tick_s
        self._owned = Ownership()
        self._sent: dict[TopicPartition, Offset] = {}
        self._ended = threading.Event()
        if tick_s is not None:
            start_thread(self._run, "group-consumer-clock")

    def ownership(self) -> Ownership:
        """Return the assigned partitions, outside any group."""
        return self._owned

    def update(self) -> None:
        """Take over the partitions that are read now."""
        for key in self._sent.keys() - self._fetching.partitions:
            del self._sent[key]
        self._owned = Ownership(version=self._owned.version + 1, partitions=self._fetching.partitions)

    def commit_later(self, offsets: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Commit those that have changed since the last call, in this thread, without waiting for the answer.

        Another thread would wait for the end of the program's calls of `poll`.

        Returns:
            Those that have changed.
        """
        if changed := {key: at for key, at in offsets.items() if self._sent.get(key) != at}:
            client: Any = self._fetching.client
            client.commit(offsets=kafka_partitions(changed), asynchronous=True)
            self._sent |= changed
        return changed

    def commit(self, offsets: Mapping[TopicPartition, Offset], timeout_s: float) -> None:  # noqa: ARG002 -- librdkafka has its own
        """Commit, and wait for the answer.

        Raises:
            ConsumerError: the coordinator refused; its code is the broker's.
        """
        client: Any = self._fetching.client
        try:
            client.commit(offsets=kafka_partitions(offsets), asynchronous=False)
        except KafkaException as error:
            raise ConsumerError(f"{len(offsets)} offsets were not committed: {error}", error.args[0].code()) from error

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """No effect: the fetching client has them already."""

    def wait_joined(self, timeout_s: float) -> Ownership:  # noqa: ARG002 -- as a member's
        """Return the ownership: there is no group to wait for."""
        return self._owned

    def close(self) -> None:
        """Release all partitions."""
        self._ended.set()
        if self._owned.partitions:
            self._on_revoked(self._owned.partitions)

    def _run(self) -> None:
        while not self._ended.wait(self._tick_s):
            self._tick()
