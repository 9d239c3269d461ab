# mypy: disable-error-code="no-untyped-call"
# ruff: noqa: SLF001
"""Membership of a consumer group without fetching, by kafka-python's coordinator."""

import contextlib
import threading
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from spark_sink._cursors import Holding
from spark_sink._offsets import TopicPartition

_POLL_MS = 200
_PAUSE_S = 0.05
_COMMIT_MS = 5_000
_CLOSE_MS = 3_000


class Member:
    """A KafkaConsumer whose coordinator is polled in a thread of its own and whose fetcher never is.

    Contract:
    * Rebalances go on between the calls of the query, so that a long batch costs no other member a wait.
    * Every call may wait for a poll under way, a fifth of a second at most.

    Args:
        config: of kafka-python's KafkaConsumer.
        topics: names subscribed to; empty where a pattern is given.
        pattern: a regular expression that whole names must match.
    """

    def __init__(self, config: dict[str, Any], topics: tuple[str, ...], pattern: str | None) -> None:
        self._consumer = KafkaConsumer(**config)
        # kafka-python searches from the beginning of a name: the end has to be asked for.
        self._consumer.subscribe(topics=topics, pattern=pattern and f"^(?:{pattern})$")
        # KafkaConsumer is not safe for threads.
        self._lock = threading.RLock()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="membership", daemon=True).start()

    def holding(self) -> Holding | None:
        """What is held now; None while a join is under way."""
        with self._lock:
            coordinator = self._consumer._coordinator
            generation = coordinator.generation_if_stable()
            if generation is None or coordinator.need_rejoin():
                return None
            return Holding(
                generation=generation.generation_id,
                partitions=frozenset(TopicPartition(*one) for one in self._consumer.assignment()),
            )

    def commit(self, offsets: dict[TopicPartition, int]) -> None:
        """Write offsets into the group.

        Raises:
            KafkaError: the group is rebalancing, or went on without this member.
        """
        wanted = {KafkaPartition(*key): OffsetAndMetadata(at, "", -1) for key, at in offsets.items()}
        with self._lock:
            self._consumer.commit(wanted, timeout_ms=_COMMIT_MS)

    def close(self) -> None:
        """Leave the group at once."""
        self._ended.set()
        with self._lock:
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MS)

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            with self._lock, contextlib.suppress(KafkaError):
                if not self._ended.is_set():
                    self._consumer._coordinator.poll(timeout_ms=_POLL_MS)
