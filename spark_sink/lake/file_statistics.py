"""Statistics with which a reader skips files, in the format of a Delta log."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.lake.table_contract import KEYS, Span
from spark_sink.ranges.batch_offset import TopicPartition

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- in UTC, as all times here; statistics mark it with a Z
BOUNDED = ("topic", "partition", "offset", "timestamp")
"""The columns whose bounds are in the statistics of a file."""


def bounded_columns(schema: pa.Schema, partition_columns: Collection[str]) -> list[str]:
    """Return the columns whose bounds are in a file's statistics; the log stores partition values separately."""
    kinds = {name: schema.field(name).type for name in BOUNDED if name in schema.names}
    return [name for name, kind in kinds.items() if (name in KEYS or _is_time(kind)) and name not in partition_columns]


class FileStatistics:
    """Statistics with which a reader skips files: number of rows, and bounds of the identifying columns."""

    def __init__(self) -> None:
        self._rows = 0
        self._low: dict[str, Any] = {}
        self._high: dict[str, Any] = {}
        self._nulls: dict[str, int] = {}

    def add(self, rows: pa.Table, spans: Mapping[TopicPartition, Span] | None = None) -> None:
        """Add rows of the file.

        Args:
            rows: the rows.
            spans: their offsets by partition if they are known; then no row lacks an identifying value.
        """
        self._rows += rows.num_rows
        for name in BOUNDED:
            if name not in rows.column_names:
                continue
            if spans and name in KEYS:
                self._nulls.setdefault(name, 0)
                self._widen(name, *_span_bounds(name, spans))
                continue
            column = rows.column(name)
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            if name not in KEYS and not _is_time(column.type):
                continue
            bounds = pc.min_max(column)
            if bounds["min"].is_valid:
                self._widen(name, _comparable(bounds["min"]), _comparable(bounds["max"]))

    def _widen(self, name: str, low: Any, high: Any) -> None:  # noqa: ANN401 -- text or a number
        self._low[name] = min(low, self._low.get(name, low))
        self._high[name] = max(high, self._high.get(name, high))

    def json(self, columns: list[str]) -> str:
        """Return the statistics of these columns, in the format of a Delta log."""

        def bounds(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: _time(at) if name not in KEYS else at for name, at in values.items() if name in columns}

        return json.dumps(
            {
                "numRecords": self._rows,
                "minValues": bounds(self._low),
                "maxValues": bounds(self._high),
                "nullCount": {name: count for name, count in self._nulls.items() if name in columns},
            }
        )


def _span_bounds(name: str, spans: Mapping[TopicPartition, Span]) -> tuple[Any, Any]:
    """Return the bounds of an identifying column."""
    if name == "offset":
        return min(span.first for span in spans.values()), max(span.last for span in spans.values())
    values = [getattr(key, name) for key in spans]
    return min(values), max(values)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "us")


def _comparable(value: pa.Scalar) -> Any:  # noqa: ANN401 -- text or a number
    # A time is compared by its microseconds: a producer's wrong timestamp may be after the year 9999, Python's limit.
    return value.value if isinstance(value, pa.TimestampScalar) else value.as_py()


def _time(microseconds: int) -> str:
    """Return a time for statistics; the first or last time of the calendar if it is outside.

    A bound must not be missing, because delta-rs' datasets would skip the file in every query on the column.
    """
    try:
        at = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        at = datetime(9999, 12, 31, 23, 59, 59, 999999) if microseconds > 0 else datetime(1, 1, 1)  # noqa: DTZ001 -- in UTC, as all times here
    return f"{at.isoformat(timespec='microseconds')}Z"
