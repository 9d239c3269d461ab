"""Decisions as JSON lines, with all that they were made from, and their explanation later."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assignors.errors import ScalingFileError
from assignors.scaling.decision import Decision
from assignors.scaling.lag_gate import PartitionState
from assignors.scaling.workers_topic import ScaledTopic


def entry(decision: Decision, name: ScaledTopic, policy: str, *, applied: bool) -> dict[str, Any]:
    """One decision as a line: numbers, sentences, and the last observation it was made from."""
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


def append(path: Path, line: dict[str, Any]) -> None:
    """Add a line.

    Raises:
        ScalingFileError: the file cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    except OSError as error:
        raise ScalingFileError(f"{path}: decisions cannot be recorded: {error.strerror}") from error


def journal_entries(path: Path, topic: str) -> Iterator[dict[str, Any]]:
    """The decisions of a topic, the oldest first; a last line that is cut off is passed over.

    Raises:
        ScalingFileError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except (ValueError, RecursionError):
                    continue
                if isinstance(line, dict) and line.get("topic") == topic:
                    yield line
    except OSError as error:
        said = f"{path}: no decisions can be read: {error.strerror}; --journal names another"
        raise ScalingFileError(said) from error


def explain_entry(line: dict[str, Any]) -> str:
    """One decision in words.

    Raises:
        ScalingFileError: something is missing in it.
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
    said = [
        f"{line['at']}  {line['topic']}  {change}{'' if line['applied'] else '  (dry run)'}",
        f"  {line['policy']}: {line['reason']}",
        (
            f"  seen: {sum(known)} records behind in {len(known)} of {len(inputs['lag'])} partitions, the oldest "
            f"{max(inputs['lag_s'], default=0.0):.0f} s; {sum(inputs['arriving']):.1f} a second come, "
            f"{sum(inputs['leaving']):.1f} are read; "
            f"{inputs['observations']} observations over {inputs['window_s']:.0f} s"
        ),
    ]
    return "\n".join([*said, *(f"  {name}: {text}" for name, text in line["findings"].items())])
