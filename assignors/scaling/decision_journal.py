"""Decisions as JSON lines, with all their inputs, and the explanation of these lines."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from assignors.errors import ScalingFileError
from assignors.scaling.stalled_lag import PartitionState
from assignors.scaling.workers_of_topic import Decision
from assignors.scaling.workers_records import ScaledTopic

_log = structlog.get_logger("azimuth.scaling")


def entry(decision: Decision, name: ScaledTopic, policy: str, *, applied: bool) -> dict[str, Any]:
    """Return one decision as a line: numbers, sentences, and the last observation of its input."""
    view, seen = decision.view, decision.view.window
    return {
        "at": datetime.fromtimestamp(seen.now_s, UTC).isoformat(timespec="milliseconds"),
        **name._asdict(),
        "policy": policy,
        "before": decision.before,
        "workers": decision.workers,
        "proposed": decision.proposed.workers,
        "reason": decision.reason,
        "applied": applied,
        "findings": decision.findings,
        "inputs": {
            "observations": len(seen.times_s),
            "window_s": round(seen.now_s - float(seen.times_s[0]), 3),
            "worker_rate": view.worker_rate,
            "deadline_s": None if math.isinf(view.deadline_s) else round(view.deadline_s, 3),
            "start": seen.start[-1].tolist(),
            "end": seen.end[-1].tolist(),
            "committed": seen.committed[-1].tolist(),
            "lag": view.lag.tolist(),
            "lag_s": view.lag_s.round(3).tolist(),
            "arriving": view.arriving.round(3).tolist(),
            "leaving": view.leaving.round(3).tolist(),
            "states": [PartitionState(int(state)).name.lower() for state in view.states],
        },
    }


class DecisionJournal:
    """Appends decisions as lines to a file; the previous file is kept as `<name>.1` in the same folder.

    Contract: `append` never raises. If the file cannot be written, this is logged once, and `failure` has the reason.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        """Prepare.

        Args:
            path: path of the file.
            most_bytes: a longer file becomes `<name>.1`, and a new one begins.
        """
        self._path = path
        self._most_bytes = most_bytes
        self.failure = ""
        """The reason why the last line was not recorded; empty if it was."""

    def append(self, line: dict[str, Any]) -> None:
        """Add a line."""
        try:
            self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            failure = f"{self._path}: decisions are made and not recorded: {error.strerror}"
            if failure != self.failure:
                _log.error(failure)
            self.failure = failure
        else:
            self.failure = ""

    def _append(self, line: bytes) -> None:
        with self._path.open("ab+") as file:
            if (size := file.tell()) and file.seekable():
                file.seek(size - 1)
                if file.read(1) != b"\n":  # a line that a full disk has truncated
                    line = b"\n" + line
            file.write(line)
        if size + len(line) > self._most_bytes:
            self._path.replace(_before(self._path))


def _before(path: Path) -> Path:
    return path.parent / f"{path.name}.1"


def journal_entries(path: Path, topic: str) -> Iterator[dict[str, Any]]:
    """Yield the decisions of a topic, the oldest first, from the previous file, too; truncated lines are left out.

    Raises:
        ScalingFileError: the file cannot be read.
    """
    before = _before(path)
    try:
        files = [one for one in (before, path) if one.exists()]
        for one in files or [path]:
            yield from _entries(one, topic)
    except OSError as error:
        said = f"{path}: no decisions can be read: {error.strerror}; --journal names another"
        raise ScalingFileError(said) from error


def _entries(path: Path, topic: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and line.get("topic") == topic:
                yield line


def explain_entry(line: dict[str, Any]) -> str:
    """Explain one decision in words.

    Raises:
        ScalingFileError: the line lacks a value.
    """
    try:
        return _in_words(line)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScalingFileError(
            f"a decision on topic {line.get('topic')!r} at {line.get('at')} is not as this version writes them "
            f"({error!r}): --json prints it as it is"
        ) from error


def _in_words(line: dict[str, Any]) -> str:
    inputs = line["inputs"]
    known = [lag for lag in inputs["lag"] if lag >= 0]
    change = (
        f"{line['before']} -> {line['workers']}" if line["before"] != line["workers"] else f"{line['workers']} kept"
    )
    # A number that is kept is not published again, and only the leader of several evaluators publishes.
    silent = "" if line["applied"] or line["before"] == line["workers"] else "  (not published)"
    said = [
        f"{line['at']}  {line['topic']}  {change}{silent}",
        f"  {line['policy']}: {line['reason']}",
        (
            f"  seen: {sum(known)} records behind in {len(known)} of {len(inputs['lag'])} partitions, the oldest "
            f"{max(inputs['lag_s'], default=0.0):.0f} s; {sum(inputs['arriving']):.1f} a second come, "
            f"{sum(inputs['leaving']):.1f} are read; "
            f"{inputs['observations']} observations over {inputs['window_s']:.0f} s"
        ),
    ]
    return "\n".join([*said, *(f"  {name}: {text}" for name, text in line["findings"].items())])
