"""Counts and shows the records that wait in quarantine, in bounded memory: a quarantine may be larger than that."""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_KEYS = ("topic", "partition", "offset")
COUNTED = (*_KEYS, "error_class")  # the columns that `counts` needs

Reason = tuple[str, str | None]
"""Topic and class of the error."""


def counts(parts: Iterable[pa.Table]) -> dict[Reason, int]:
    """Count records by topic and error, ordered by the first record of each.

    Args:
        parts: records with the columns COUNTED, in any order.
    """
    number: dict[Reason, int] = {}
    first: dict[Reason, tuple[int, int]] = {}
    for part in parts:
        found = part.group_by(["topic", "error_class", "partition"]).aggregate([("offset", "count"), ("offset", "min")])
        for row in found.to_pylist():
            reason, place = (row["topic"], row["error_class"]), (row["partition"], row["offset_min"])
            number[reason] = number.get(reason, 0) + row["offset_count"]
            first[reason] = min(place, first.get(reason, place))
    return {one: number[one] for one in sorted(number, key=lambda one: (one[0], first[one]))}


def lowest(
    parts: Iterable[pa.Table], wanted: Mapping[str, object], limit: int, limit_bytes: int | None = None
) -> pa.Table | None:
    """Return the first records, ordered by topic, partition and offset; None if there are none.

    Args:
        parts: records of the quarantine, in any order.
        wanted: value by column, of the records to return.
        limit: number of records at most.
        limit_bytes: bytes of keys and values at most, but at least one record; None for any number.
    """
    kept: pa.Table | None = None
    ceiling: Mapping[str, object] | None = None  # the place of the first record that was left out
    for part in parts:
        for name, value in wanted.items():
            part = part.filter(pc.equal(part.column(name), pa.scalar(value)))  # noqa: PLW2901 -- narrowed
        if ceiling is not None:
            part = part.filter(_below(ceiling))  # noqa: PLW2901 -- narrowed
        both = part if kept is None else pa.concat_tables([kept, part])
        order = pc.sort_indices(both, sort_keys=[(name, "ascending") for name in _KEYS])
        # Slices of a table keep all of it in memory, and `take` copies.
        kept = both.take(order[:limit])
        fitting = _fitting(kept, limit_bytes)
        if fitting < len(order):
            (ceiling,) = both.select(_KEYS).take(order[fitting : fitting + 1]).to_pylist()
        if fitting < len(kept):
            kept = both.take(order[:fitting])
    return kept


def _fitting(ordered: pa.Table, limit_bytes: int | None) -> int:
    """Return how many of the first records have at most this many bytes; at least one."""
    if limit_bytes is None:
        return len(ordered)
    sizes = [pc.fill_null(pc.binary_length(ordered.column(name)), 0).to_numpy() for name in ("key", "value")]
    return max(1, int(np.searchsorted(np.cumsum(sizes[0].astype(np.int64) + sizes[1]), limit_bytes, "right")))


def _below(place: Mapping[str, object]) -> pc.Expression:
    """Return a filter of the records before a place, in the order of _KEYS."""
    before = pc.scalar(False)  # noqa: FBT003 -- a value of Arrow
    for name in reversed(_KEYS):
        at = pc.scalar(place[name])
        before = (pc.field(name) < at) | ((pc.field(name) == at) & before)
    return before
