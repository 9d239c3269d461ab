"""The timeline of a run: commits from the Delta log, ownership from the agents' telemetry, events from the demo."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_sink.lake.positions_in_delta_log import parse_positions
from spark_sink.ranges.batch_offset import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit of the table.

    Attributes:
        time: unix seconds, from the commit's entry in the log.
        agent: the agent that wrote it.
        rows: rows added.
        positions: exclusive end offset of every partition whose position it moved.
        files: data files added, with the names in the log.
    """

    time: float
    agent: str
    rows: int
    positions: Mapping[TopicPartition, int]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The partitions that an agent owned from a time on."""

    time: float
    agent: str
    generation: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An action or an observation of the demo."""

    time: float
    kind: str
    agent: str
    text: str


@dataclass(slots=True)
class CommitLog:
    """Reads a table's log as it grows; each call of `read` returns the new entries."""

    table: Path
    group: str
    commits: list[Commit] = field(default_factory=list)
    _next: int = 0

    @property
    def rows(self) -> int:
        """Rows committed so far."""
        return sum(c.rows for c in self.commits)

    def read(self) -> list[Commit]:
        """Return the commits since the last call, oldest first."""
        found: list[Commit] = []
        while True:
            entry = self.table / "_delta_log" / f"{self._next:020}.json"
            try:
                text = entry.read_text()
            except FileNotFoundError:
                break
            commit = parse_commit(text, self.group)
            if commit is not None:
                found.append(commit)
            self._next += 1
        self.commits.extend(found)
        return found


def parse_commit(text: str, group: str) -> Commit | None:
    """Parse one entry of a Delta log; None if it moves no position of the group."""
    actions = [json.loads(line) for line in text.split("\n") if line.strip()]
    transactions = {a["txn"]["appId"]: int(a["txn"]["version"]) for a in actions if "txn" in a}
    positions = parse_positions(transactions, group)
    if not positions:
        return None
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    note = info.get("kafka-azimuth", {})
    note = json.loads(note) if isinstance(note, str) else note
    adds = [a["add"] for a in actions if "add" in a]
    return Commit(
        time=info.get("timestamp", 0) / 1000,
        agent=str(note.get("agent", "")),
        rows=sum(int(json.loads(add["stats"])["numRecords"]) for add in adds),
        positions=positions,
        files=tuple(add["path"] for add in adds),
    )


def read_ownership(telemetry: Path) -> list[Ownership]:
    """Return the changes of ownership from an agent's telemetry, oldest first; a partial last line is left out."""
    if not telemetry.exists():
        return []
    found: list[Ownership] = []
    for line in telemetry.read_text().splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # the writer was killed in the middle of the line
            continue
        partitions = frozenset(TopicPartition(t, p) for t, ps in said["owned"].items() for p in ps)
        if not found or found[-1].partitions != partitions:
            found.append(
                Ownership(time=said["time"], agent=said["agent"], generation=said["generation"], partitions=partitions)
            )
    return found


def find_takeover(
    commits: Iterable[Commit], *, dead: str, owned: frozenset[TopicPartition], since: float
) -> Commit | None:
    """Return the first commit by another agent after a death that has rows of the dead agent's partitions."""
    for commit in commits:
        if commit.time > since and commit.agent != dead and commit.rows and not owned.isdisjoint(commit.positions):
            return commit
    return None


def lag_over_time(commits: Iterable[Commit], produced: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return the number of records produced and not yet committed, at every change.

    Args:
        commits: of the table.
        produced: (unix seconds, records produced until then), ascending.
    """
    changes = [(c.time, 0, c.rows) for c in commits]
    changes += [(time, total, 0) for time, total in produced]
    there = committed = 0
    found = []
    for time, total, rows in sorted(changes):
        there, committed = max(there, total), committed + rows
        found.append((time, max(0, there - committed)))
    return found
