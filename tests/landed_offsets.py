"""Offsets of the rows in Delta tables, and in parts of a table."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable


def landed_offsets(path: Path | str, topic: str | None = None) -> list[int]:
    """Return the offsets in a Delta table, sorted.

    Args:
        path: of the table.
        topic: only the rows of this topic; None for all.
    """
    rows = DeltaTable(path).to_pyarrow_table(columns=["topic", "offset"]).to_pylist()
    return sorted(row["offset"] for row in rows if topic in {None, row["topic"]})


def offsets_of(parts: Iterable[pa.Table]) -> list[int]:
    """Return the offsets in all parts, sorted."""
    return sorted(offset for part in parts for offset in part.column("offset").to_pylist())
