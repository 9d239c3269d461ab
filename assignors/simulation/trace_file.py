"""Reads the user's own traces: a file of record counts, each spread over the time that it covers."""

import csv
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from assignors.errors import TraceError
from assignors.scaling.observation import F64, I64
from assignors.simulation.traces import DAY_S, MOST_CELLS, MOST_STEPS, Trace

_COLUMNS = ("time_s", "topic", "partition", "records")
_MOST = 1 << 53  # records: a float counts exactly up to here

Row = tuple[float, int, int]
"""Time, partition and records."""


def traces_from_csv(
    path: Path, *, worker_rate: float, step_s: float = 30.0, retention_s: float | None = DAY_S
) -> list[Trace]:
    """Read traces from a file with the columns time_s, topic, partition, records.

    A row gives the number of records written to a partition from its time until the time of the partition's next row;
    they are spread evenly over that time. The last row of each partition covers the median duration of its topic's
    rows. Times count from the first one.

    Raises:
        TraceError: the file cannot be read, a column is missing, or a value is not a number.
    """
    rows = {topic: _by_partition(found) for topic, found in _rows(path).items()}
    lasts = {topic: _usual_s(found, step_s) for topic, found in rows.items()}
    times = [time for found in rows.values() for knots in found.values() for time in knots]
    first = min(times)
    end = max(max(knots) + lasts[topic] for topic, found in rows.items() for knots in found.values())
    made = []
    for topic, found in rows.items():
        steps, partitions = (end - first) / step_s, max(found) + 1
        if steps > MOST_STEPS or steps * partitions > MOST_CELLS:
            raise TraceError(
                f"{path}: topic {topic!r} has {partitions} partitions over {end - first:g} s, {steps:g} steps: more "
                f"than the {MOST_STEPS} steps and {MOST_CELLS} cells that can be simulated; give times in seconds, a "
                "shorter time, and partitions numbered from 0"
            )
        bounds: F64 = first + step_s * np.arange(math.ceil(steps) + 1, dtype=np.float64)
        bounds[-1] = max(bounds[-1], end)  # a rounded product may fall short of it
        arrivals = np.zeros((len(bounds) - 1, partitions), dtype=np.int64)
        for partition, counts in found.items():
            arrivals[:, partition] = _spread(counts, lasts[topic], bounds)
        made.append(
            Trace(
                name=path.stem,
                step_s=step_s,
                arrivals=arrivals,
                worker_rate=worker_rate,
                retention_s=retention_s,
                topic=topic,
            )
        )
    return made


def _by_partition(rows: Sequence[Row]) -> dict[int, dict[float, int]]:
    """Return each partition's records by ascending time; rows of the same time are added up."""
    found: dict[int, dict[float, int]] = {}
    for time, partition, records in sorted(rows):
        counts = found.setdefault(partition, {})
        counts[time] = counts.get(time, 0) + records
    return found


def _usual_s(partitions: Mapping[int, Mapping[float, int]], step_s: float) -> float:
    """Return the median duration of a row; a step if no partition has two rows."""
    return median([after - one for counts in partitions.values() for one, after in pairwise(counts)] or [step_s])


def _spread(counts: Mapping[float, int], last_s: float, bounds: F64) -> I64:
    """Return the records of each step, shape (T,): differences of their sum, which is linear between two rows.

    Args:
        counts: records by the time at which they start, ascending.
        last_s: duration of the last count.
        bounds: of the steps, shape (T + 1,).
    """
    times = [*counts, max(counts) + last_s]
    total = np.concatenate([[0], np.cumsum(list(counts.values()), dtype=np.int64)])
    spread: I64 = np.diff(np.rint(np.interp(bounds, times, total)).astype(np.int64))
    return spread


def _rows(path: Path) -> dict[str, list[Row]]:
    """Return the rows of each topic."""
    rows: dict[str, list[Row]] = {}
    total = number = 0
    try:
        # Spreadsheets write a byte order mark; utf-8-sig keeps it out of the first column's name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                topic, entry = _row(row, f"{path}, line {number}")
                rows.setdefault(topic, []).append(entry)
                total += entry[2]
    except csv.Error as error:
        raise TraceError(f"{path}, line {number + 1}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise TraceError(f"{path}: cannot be read: {why}") from error
    if not rows:
        raise TraceError(f"{path}: holds no rows")
    if total >= _MOST:
        raise TraceError(f"{path}: {total} records in all, need fewer than {_MOST}")
    return rows


def _row(row: Mapping[str, str | None], place: str) -> tuple[str, Row]:
    missing = [column for column in _COLUMNS if row.get(column) is None]
    if missing:
        raise TraceError(f"{place}: no column {missing[0]!r}; need {', '.join(_COLUMNS)}")
    time_s, topic, partition, records = (str(row[column]) for column in _COLUMNS)
    if not topic.strip():
        raise TraceError(f"{place}: topic is empty")
    try:
        entry = (float(time_s), int(partition), int(records))
    except ValueError as error:
        raise TraceError(f"{place}: {error}; time_s is seconds, partition and records are whole numbers") from error
    if not math.isfinite(entry[0]) or entry[1] < 0 or entry[2] < 0:
        raise TraceError(
            f"{place}: time_s={time_s}, partition={partition}, records={records}: need a finite time, "
            "and partition and records of 0 or more"
        )
    return topic, entry
