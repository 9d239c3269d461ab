"""Counts and shows the records that wait in quarantine, in bounded memory: a quarantine may be larger than that."""

from collections.abc import Iterable, Mapping

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


def lowest(parts: Iterable[pa.Table], wanted: Mapping[str, object], limit: int) -> pa.Table | None:
    """Return the first records, ordered by topic, partition and offset; None if there are none.

    Args:
        parts: records of the quarantine, in any order.
        wanted: value by column, of the records to return.
        limit: number of records.
    """
    kept: pa.Table | None = None
    for part in parts:
        for name, value in wanted.items():
            part = part.filter(pc.equal(part.column(name), pa.scalar(value)))  # noqa: PLW2901 -- narrowed
        both = part if kept is None else pa.concat_tables([kept, part])
        order = pc.sort_indices(both, sort_keys=[(name, "ascending") for name in _KEYS])[:limit]
        # Slices of a table keep all of it in memory, and `take` copies.
        kept = both.take(order)
    return kept
