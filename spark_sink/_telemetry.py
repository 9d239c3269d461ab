"""Ownership and lag over time, as JSON lines: what the pictures of a run are drawn from."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from spark_sink._cursors import Holding
from spark_sink._offsets import TopicPartition

_EVERY_S = 1.0


class Telemetry:
    """Appends a line when ownership changes, and when the lag has changed, at most once a second.

    A line is `{"time": unix seconds, "agent": name, "generation": n, "owned": {topic: [partition, ...]},
    "lag_records": n, "left": true when the member left}`.
    """

    def __init__(self, path: str, agent: str, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._agent = agent
        self._clock = clock
        self._last: tuple[Holding, int] | None = None
        self._written = 0.0

    def note(self, holding: Holding, backlog: Mapping[TopicPartition, int]) -> None:
        """Say what is held and how far behind it is, in records."""
        lag = sum(backlog.values())
        now = self._clock()
        changed = self._last is None or self._last[0] != holding
        if not changed and (self._last == (holding, lag) or now - self._written < _EVERY_S):
            return
        self._last, self._written = (holding, lag), now
        self._append(now, holding, lag_records=lag)

    def left(self) -> None:
        """Say that the member has left."""
        self._last = None
        self._append(self._clock(), Holding(), lag_records=0, left=True)

    def _append(self, now: float, holding: Holding, **more: object) -> None:
        owned: dict[str, list[int]] = {}
        for topic, partition in sorted(holding.partitions):
            owned.setdefault(topic, []).append(partition)
        line = {"time": now, "agent": self._agent, "generation": holding.generation, "owned": owned, **more}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
