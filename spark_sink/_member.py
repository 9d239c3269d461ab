# mypy: disable-error-code="no-untyped-call"
# ruff: noqa: SLF001
"""Provisional membership until `assignors.GroupMember` is there."""

import contextlib
import threading
import time
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from spark_sink._cursors import Holding
from spark_sink._offsets import TopicPartition


class Member:
    """A KafkaConsumer whose coordinator is polled in a thread and whose fetcher is never."""

    def __init__(self, config: dict[str, Any], topics: tuple[str, ...], pattern: str | None) -> None:
        self._consumer = KafkaConsumer(**config)
        self._consumer.subscribe(topics=topics, pattern=pattern and f"^(?:{pattern})$")
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            with self._lock, contextlib.suppress(KafkaError):
                self._consumer._coordinator.poll(timeout_ms=200)
            time.sleep(0.05)

    def holding(self) -> Holding | None:
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
        with self._lock:
            self._consumer.commit(
                {KafkaPartition(*key): OffsetAndMetadata(at, "", -1) for key, at in offsets.items()}, timeout_ms=5000
            )

    def close(self) -> None:
        self._ended.set()
        with self._lock:
            self._consumer.close(autocommit=False, timeout_ms=3000)
