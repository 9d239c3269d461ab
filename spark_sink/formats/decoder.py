"""From raw batches to decoded ones. A record that cannot be decoded becomes a row with the reason, never nothing.

The column `_quarantine` is null for a good row; the sink takes it away and keeps bad rows in the table's quarantine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats.quarantine import COLUMN, REASON

COORDINATES = ("topic", "partition", "offset", "timestamp", "key")
_KEPT = (*COORDINATES, "headers")
_SLICE = 1_000


@dataclass(frozen=True, slots=True)
class Bad:
    """Why a record could not be decoded.

    Attributes:
        error: the class of the error, one word.
        text: a sentence.
        schema_id: of the registry, where the record named one.
    """

    error: str
    text: str
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class Decoded:
    """Values of one batch.

    Attributes:
        columns: one array of N values for each column of the decoder; null where the record is bad.
        bad: by row number.
    """

    columns: Sequence[pa.Array]
    bad: Mapping[int, Bad] = field(default_factory=dict)


class Decoder(Protocol):
    """Makes columns of values.

    Contract:
    * The same value decodes the same way at any time: a batch may be replayed. What may pass (a registry that is
      down) is raised, and the batch is tried again; it never makes a bad record.
    * Instances are pickled to Spark's tasks; connections are made there.
    """

    @property
    def columns(self) -> pa.Schema:
        """Names and types of what is decoded."""
        ...

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch."""
        ...


def decoded_schema(raw: pa.Schema, columns: pa.Schema) -> pa.Schema:
    """The columns of decoded batches: where the record was, what was in it, and whether it was bad.

    Raises:
        OptionError: a decoded column has a name that is taken.
    """
    kept = [raw.field(name) for name in _KEPT if name in raw.names]
    taken = [name for name in columns.names if name in {*_KEPT, COLUMN}]
    if taken:
        raise OptionError(f"decoded column {taken[0]!r} has the name of a column of its own: rename it in the schema")
    return pa.schema([*kept, *columns, pa.field(COLUMN, REASON)])


def decode_batch(raw: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
    """Decode one raw batch; the result has as many rows.

    Slice by slice: the Python objects of a whole batch leave the processor's caches, and decoding JSON then takes two
    and a half times as long.
    """
    parts = [_decode(raw.slice(begin, _SLICE), decoder) for begin in range(0, max(raw.num_rows, 1), _SLICE)]
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(one) for one in columns], schema=parts[0].schema)


def _decode(raw: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
    values = raw.column("value").to_pylist()
    found = decoder.decode(values)
    schema = decoded_schema(raw.schema, decoder.columns)
    kept = [raw.column(name) for name in schema.names if name in raw.schema.names and name not in decoder.columns.names]
    return pa.RecordBatch.from_arrays([*kept, *found.columns, _reasons(raw, values, found.bad)], schema=schema)


def _reasons(raw: pa.RecordBatch, values: Sequence[bytes | None], bad: Mapping[int, Bad]) -> pa.Array:
    if not bad:
        return pa.nulls(raw.num_rows, REASON)
    rows: list[dict[str, object] | None] = [None] * raw.num_rows
    for number, one in bad.items():
        rows[number] = {
            "error_class": one.error,
            "error_text": one.text,
            "schema_id": one.schema_id,
            "key": raw.column("key")[number].as_py(),
            "value": values[number],
            "headers": raw.column("headers")[number].as_py() if "headers" in raw.schema.names else None,
        }
    return pa.array(rows, REASON)
