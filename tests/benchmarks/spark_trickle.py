"""Records that trickle into many partitions, and the memory of the process tree that reads them."""

import itertools
import json
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from confluent_kafka import Producer

from tests.benchmarks.spark_topics import Records
from tests.integration.spark_sink.tied import tree

_TICK_S, _LOOK_S = 0.05, 2.0
_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


class Trickle(threading.Thread):
    """Produces at a steady rate, one partition after the other, until `end`.

    Args:
        producer: of confluent-kafka.
        partitions: topic and number of each.
        records: their keys and values are sent repeatedly.
        rate: records a second, over all partitions.
    """

    def __init__(self, producer: Producer, partitions: list[tuple[str, int]], records: Records, rate: int) -> None:
        super().__init__(name="trickle", daemon=True)
        self._producer, self._rate = producer, rate
        self._places, self._records = itertools.cycle(partitions), itertools.cycle(records)
        self._ended = threading.Event()
        self._sent: list[int] = []

    def run(self) -> None:
        """Send."""
        begun = time.monotonic()
        while not self._ended.wait(_TICK_S):
            for _ in range(int((time.monotonic() - begun) * self._rate) - len(self._sent)):
                (topic, partition), (_, key, value) = next(self._places), next(self._records)
                now_ms = int(time.time() * 1000)
                self._producer.produce(topic, value, key, partition=partition, timestamp=now_ms)
                self._sent.append(now_ms)
            self._producer.poll(0)

    def end(self) -> None:
        """Stop sending, and wait until all records are acknowledged."""
        self._ended.set()
        self.join()
        assert self._producer.flush(60) == 0

    def between(self, begin: float, end: float) -> int:
        """Count the records with a time in `[begin, end)`, seconds since 1970."""
        return sum(begin <= one / 1000 < end for one in self._sent)


class Memory(threading.Thread):
    """Samples the memory of a process tree; pages that several processes share count once (PSS)."""

    def __init__(self, pid: int) -> None:
        super().__init__(name="memory", daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self._seen: list[dict[str, float]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Look."""
        while not self._ended.wait(_LOOK_S):
            found: dict[str, float] = defaultdict(float)
            for one in tree(self._pid):
                try:
                    name, used = one.name(), one.memory_full_info()
                except psutil.Error:
                    continue
                found["java_GB" if name == "java" else "python_GB"] += used.pss / 1e9
                found["rss_GB"] += used.rss / 1e9
                found["processes"] += 1
            found["pss_GB"] = found["java_GB"] + found["python_GB"]
            self._seen.append(dict(found))

    def peak(self) -> dict[str, float]:
        """The parts at the time of the largest total."""
        most = max(self._seen, key=lambda one: one["pss_GB"])
        return {name: round(value, 3) for name, value in most.items()}


def batches(events: Path) -> list[dict[str, Any]]:
    """Read the progress of every batch with records, from Spark's event log.

    Args:
        events: the folder of the log.
    """
    lines = (line for log in events.iterdir() for line in log.read_text().splitlines() if _PROGRESS in line)
    found = [json.loads(line)["progress"] for line in lines]
    return [one for one in found if "addBatch" in one["durationMs"]]
