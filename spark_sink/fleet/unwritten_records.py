"""Records of one source that were read and are not written yet, by column."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import pyarrow as pa

from spark_sink.fetch.raw_columns import LAST_MS, arrow_schema
from spark_sink.sink.rows_by_topic import RowsByTopic

_RECORD_BYTES = 200  # approximate size of numbers, references and list slots of one record
_HEADER_BYTES = 300  # approximate size of a dictionary and its two values


@dataclass(slots=True, kw_only=True)
class RecordBuffer:
    """Records by column, until they are written to files.

    Attributes:
        include_headers: keep the records' headers, in the column `headers` of Spark's raw format.
        size_bytes: approximate memory of the records.
        without_headers: labels of topics whose headers are dropped although a record has some. Only one record of each
            topic is checked, because a check of every record would be slow.
    """

    include_headers: bool = False
    size_bytes: int = 0
    without_headers: set[str] = field(default_factory=set)
    _sampled: set[str] = field(default_factory=set)
    _columns: dict[str, list[Any]] = field(default_factory=dict)
    _by_topic: RowsByTopic | None = None  # of all records; writing converts them once, not once for each table

    def __post_init__(self) -> None:
        if not self._columns:
            self._columns = {name: [] for name in self.schema.names}

    def __len__(self) -> int:
        return len(self._columns["offset"])

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return arrow_schema(headers=self.include_headers)

    def empty(self) -> "RecordBuffer":
        """Create another buffer with the same columns, without records."""
        return RecordBuffer(include_headers=self.include_headers)

    def add(self, label: str, message: Any) -> None:  # noqa: ANN401 - a confluent_kafka.Message
        """Add one record."""
        self._by_topic = None
        kind, stamp_ms = message.timestamp()
        key, value = message.key(), message.value()
        self.size_bytes += _RECORD_BYTES + len(key or b"") + len(value or b"")
        stamp = stamp_ms * 1000 if kind and 0 <= stamp_ms <= LAST_MS else None  # as the Spark source has it
        values = [label, message.partition(), message.offset(), stamp, key, value]
        if self.include_headers:
            values.append(self._headers(message))
        elif label not in self._sampled:
            self._sampled.add(label)
            if _pairs(message):
                self.without_headers.add(label)
        for column, one in zip(self._columns.values(), values, strict=True):
            column.append(one)

    def without(self, labels: Collection[str]) -> "RecordBuffer":
        """Return all records except those of these labels."""
        if not labels:
            return self
        kept = [label not in labels for label in self._columns["topic"]]
        share = sum(kept) / len(kept) if kept else 0.0
        return RecordBuffer(
            include_headers=self.include_headers,
            size_bytes=int(self.size_bytes * share),
            _columns={name: list(compress(column, kept)) for name, column in self._columns.items()},
        )

    def rows(self, only: set[str]) -> pa.Table:
        """Return the records of these labels, as Arrow."""
        if self._by_topic is None:
            self._by_topic = RowsByTopic(pa.Table.from_pydict(self._columns, schema=self.schema))
        return self._by_topic.of(only)

    def _headers(self, message: Any) -> list[dict[str, Any]] | None:  # noqa: ANN401 - as in `add`
        pairs = _pairs(message)
        if pairs is None:
            return None
        self.size_bytes += sum(_HEADER_BYTES + len(key) + len(value or b"") for key, value in pairs)
        return [{"key": key, "value": value} for key, value in pairs]


def _pairs(message: Any) -> list[tuple[str, bytes | None]] | None:  # noqa: ANN401 - a confluent_kafka.Message
    try:
        found: list[tuple[str, bytes | None]] | None = message.headers()
    except (UnicodeDecodeError, SystemError) as error:
        # If a name is not UTF-8, the client returns no header of the record, and reports the cause within a
        # SystemError; such a record must not stop its source.
        cause = error if isinstance(error, UnicodeDecodeError) else error.__cause__ or error.__context__
        if not isinstance(cause, UnicodeDecodeError):
            raise
        return [("azimuth.unreadable_headers", str(cause).encode())]
    return found
