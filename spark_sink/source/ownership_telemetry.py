"""Files that a reader writes for other processes: ownership and lag over time, and the assignment for metrics."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from spark_sink.ranges.assigned_positions import Assignment
from spark_sink.ranges.batch_offset import TopicPartition

_EVERY_S = 1.0


class AssignmentListener(Protocol):
    """Gets the assignment at each trigger."""

    def note(self, holding: Assignment, backlog: Mapping[TopicPartition, int]) -> None:
        """Record the assignment, and the records to read by partition."""
        ...

    def left(self) -> None:
        """Record that the member has left."""
        ...


class AssignmentCounts(NamedTuple):
    """The current assignment of a reader, in numbers."""

    generation: int = -1
    partitions: int = 0


class AssignmentFile:
    """A file with the current assignment, rewritten at each change.

    The reader is a separate process, and while there are no records to read, the offset of its last batch does not show
    a rebalance. The file is on the driver's machine, where the reader runs.

    Args:
        path: path of the file; its folder exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Assignment | None = None

    def note(self, holding: Assignment, backlog: Mapping[TopicPartition, int]) -> None:  # noqa: ARG002 -- the listener's call
        """Write the assignment."""
        if holding != self._last:
            self._write(holding)

    def left(self) -> None:
        """Write an empty assignment."""
        self._write(Assignment())

    def read(self) -> AssignmentCounts:
        """Return the last assignment written; an empty one before the first."""
        try:
            return AssignmentCounts(*map(int, self._path.read_text(encoding="ascii").split()))
        except FileNotFoundError:
            return AssignmentCounts()

    def _write(self, holding: Assignment) -> None:
        whole = self._path.with_suffix(".new")
        # A number for a dashboard must not end a query; the next trigger retries.
        with contextlib.suppress(OSError):
            whole.write_text(f"{holding.generation} {len(holding.partitions)}", encoding="ascii")
            whole.replace(self._path)
            self._last = holding


class Telemetry:
    """Appends a line when ownership changes, and when the lag has changed, at most once a second.

    A line is `{"time": unix seconds, "agent": name, "generation": n, "owned": {topic: [partition, ...]},
    "lag_records": n, "left": true when the member left}`.
    """

    def __init__(self, path: str, agent: str, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._agent = agent
        self._clock = clock
        self._last: tuple[Assignment, int] | None = None
        self._written = 0.0

    def note(self, holding: Assignment, backlog: Mapping[TopicPartition, int]) -> None:
        """Append the assignment and the lag in records."""
        lag = sum(backlog.values())
        now = self._clock()
        changed = self._last is None or self._last[0] != holding
        if not changed and (self._last == (holding, lag) or now - self._written < _EVERY_S):
            return
        self._last, self._written = (holding, lag), now
        self._append(now, holding, lag_records=lag)

    def left(self) -> None:
        """Append that the member has left."""
        self._last = None
        self._append(self._clock(), Assignment(), lag_records=0, left=True)

    def _append(self, now: float, holding: Assignment, **more: object) -> None:
        owned: dict[str, list[int]] = {}
        for topic, partition in sorted(holding.partitions):
            owned.setdefault(topic, []).append(partition)
        line = {"time": now, "agent": self._agent, "generation": holding.generation, "owned": owned, **more}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
