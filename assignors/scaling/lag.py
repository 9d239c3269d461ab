"""The lag of a group in records and in seconds, and the rates of arrivals and reads."""

import numpy as np

from assignors.scaling.observation import F64, I64, NEVER, UNKNOWN, Mask, Window


def lag_records(start: I64, end: I64, committed: I64) -> I64:
    """Count the records that are still to be read.

    The lag of a partition without a committed offset is the number of all kept records. Records that retention has
    deleted do not count. A committed offset beyond the end (a recreated topic) means no lag.

    Args:
        start: first kept offsets, `UNKNOWN` as in `Observation`.
        end: offsets after the last records, of the same shape.
        committed: the group's next offsets, of the same shape, also `NEVER`.

    Returns:
        Records, same shape, 0 or more; `UNKNOWN` if a needed offset is unknown.
    """
    first = np.where(committed == NEVER, start, np.maximum(committed, start))
    known = (end != UNKNOWN) & (committed != UNKNOWN) & ((committed != NEVER) | (start != UNKNOWN))
    return np.where(known, np.maximum(end - first, 0), UNKNOWN)


def lag_seconds(seen: Window) -> tuple[F64, Mask]:
    """Return the age of the oldest unread record.

    The time of an offset is interpolated between the observed ends around it (as Burrow and kafka-lag-exporter do
    with a table of ends). An offset older than the window is at least as old as the window.

    Args:
        seen: the observations.

    Returns:
        Seconds, shape (P,), 0 or more; 0 if no record is unread or the lag is unknown (see `lag_records`).
        Whether the true value may be larger, shape (P,).
    """
    ends, times = seen.end, seen.times_s
    behind = lag_records(seen.start[-1], ends[-1], seen.committed[-1]) > 0
    first = np.maximum(seen.committed[-1], seen.start[-1])
    # The first observation with an end beyond the offset: the record was written between it and the previous one.
    at = np.count_nonzero(ends <= first, axis=0)
    at = np.clip(at, 0, len(times) - 1)
    before = np.maximum(at - 1, 0)
    columns = np.arange(seen.partitions)
    low, high = ends[before, columns], ends[at, columns]
    older = (at == 0) | (low < 0)
    span = np.where(older, 1, np.maximum(high - low, 1))
    written = times[before] + (times[at] - times[before]) * np.clip((first - low) / span, 0.0, 1.0)
    seconds = seen.now_s - np.where(older, times[0], written)
    return np.where(behind, np.maximum(seconds, 0.0), 0.0), behind & older


def per_second(offsets: I64, times_s: F64, over_s: float) -> F64:
    """Return the rate at which offsets rise.

    Args:
        offsets: shape (T, P), with sentinels below 0.
        times_s: shape (T,), ascending.
        over_s: time before the last observation that the rate covers.

    Returns:
        Records per second, shape (P,), 0 or more; 0 if there are no two known offsets.
    """
    begin = int(np.searchsorted(times_s, times_s[-1] - over_s - 1e-6))
    begin = min(begin, max(len(times_s) - 2, 0))
    part, times = offsets[begin:], times_s[begin:]
    known = part >= 0
    if known.all():
        span = times[-1] - times[0]
        return np.maximum(part[-1] - part[0], 0) / span if span > 0 else np.zeros(part.shape[1])
    columns = np.arange(part.shape[1])
    first = np.argmax(known, axis=0)
    last = len(times) - 1 - np.argmax(known[::-1], axis=0)
    spans = times[last] - times[first]
    risen = np.maximum(part[last, columns] - part[first, columns], 0)
    return np.where(known.any(axis=0) & (spans > 0), risen / np.where(spans > 0, spans, 1.0), 0.0)
