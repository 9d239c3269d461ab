"""Decodes raw batches. A record that cannot be decoded becomes a row with the reason; it is never dropped.

The column `_quarantine` is null for a good row; the sink removes it and puts bad rows into the table's quarantine.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import unknown_fields
from spark_sink.formats.bad_values_quarantined import COLUMN, REASON
from spark_sink.formats.calendar_dates import rows_outside
from spark_sink.formats.unknown_fields import Found
from spark_sink.formats.unknown_policy import COLUMN as RESCUED
from spark_sink.formats.unknown_policy import NullPolicy, Policy

COORDINATES = ("topic", "partition", "offset", "timestamp", "key")
_KEPT = (*COORDINATES, "headers")
RESERVED = frozenset({*_KEPT, COLUMN, RESCUED})
_SLICE = 1_000
_MOST_TEXT = 1_000  # characters of a reason: messages of libraries may repeat a value of any length

# By topic, and global: each task has its own decoder, and the process outlives both.
_logged: dict[str, set[str]] = {}


@dataclass(frozen=True, slots=True)
class Bad:
    """The reason why a record could not be decoded.

    Attributes:
        error: the class of the error, one word.
        text: a sentence.
        schema_id: schema id of the registry, if the record has one.
    """

    error: str
    text: str
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class Decoded:
    """Values of one batch.

    Attributes:
        columns: one array of N values for each column of the decoder; null for bad records.
        bad: reasons by row number.
        unknown: numbers of the rows with a field that the schema lacks, by the path of the field.
    """

    columns: Sequence[pa.Array]
    bad: Mapping[int, Bad] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[int]] = field(default_factory=dict)


class Decoder(Protocol):
    """Converts values into columns.

    Contract:
    * The same value always decodes in the same way, because a batch may be replayed. A temporary error (a registry that
      is down) is raised, and the batch is retried; it never makes a record bad.
    * A value never stops the batch: a value that cannot be decoded is bad.
    * Instances are pickled to Spark's tasks, which open the connections.
    """

    unknown: Policy
    nulls: NullPolicy

    @property
    def columns(self) -> pa.Schema:
        """Names and types of the decoded columns."""
        ...

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch."""
        ...


@dataclass(frozen=True, slots=True)
class Quick:
    """Values of those rows of a batch of which a quick decoder is certain.

    Attributes:
        columns: one array of N values for each column of the decoder; null in rows that are left.
        left: whether a row is left to `decode`, shape (N,).
        inexact: whether `decode` would parse the neighbours of a row again because of it, shape (N,).
    """

    columns: Sequence[pa.Array]
    left: npt.NDArray[np.bool_]
    inexact: npt.NDArray[np.bool_]


@runtime_checkable
class QuickDecoder(Protocol):
    """A decoder that takes most rows without Python objects, and leaves the others to its `decode`.

    Contract: a row is taken only if `decode` makes the same values of it.
    """

    def quick(self, values: pa.Array) -> Quick | None:
        """Decode the values of one batch; return None if these columns have no quick way."""
        ...


def decoded_schema(raw: pa.Schema, columns: pa.Schema) -> pa.Schema:
    """Return the columns of decoded batches: the record's place, its decoded columns, and `_quarantine`.

    Raises:
        OptionError: a decoded column has a name that is in use.
    """
    kept = [raw.field(name) for name in _KEPT if name in raw.names]
    taken = [name for name in columns.names if name in {*_KEPT, COLUMN}]
    if taken:
        raise OptionError(
            f"decoded column {taken[0]!r} has the name of a column of the record itself: leave it out of the schema, "
            "then unknownFields=rescue keeps its values in the column '_rescued'"
        )
    return pa.schema([*kept, *columns, pa.field(COLUMN, REASON)])


def with_unknown(found: Decoded, rest: Found | None, policy: Policy, rows: int) -> Decoded:
    """Apply a policy other than `ignore` to unknown fields.

    Args:
        found: the decoded values without unknown fields; its bad rows have none.
        rest: the unknown fields; None if there are none.
        policy: handling of unknown fields.
        rows: number of rows of the batch, because a schema may have no columns.
    """
    texts, unknown = ({}, {}) if rest is None else (rest.texts, rest.rows)
    if policy != "quarantine":
        kept = pa.array([texts.get(n) for n in range(rows)], pa.string()) if texts else pa.nulls(rows, pa.string())
        return Decoded([*found.columns, kept], found.bad, unknown)
    if not texts:
        return found
    bad = {n: Bad("UnknownField", f"the schema does not know {text}") for n, text in texts.items()}
    return Decoded(without_rows(found.columns, bad), {**found.bad, **bad}, unknown)


def without_rows(columns: Sequence[pa.Array], bad: Container[int]) -> list[pa.Array]:
    """Return the columns with null in every bad row: a part of a record must not look like a record."""
    rows = len(columns[0]) if columns else 0
    kept = pa.array([None if number in bad else number for number in range(rows)], pa.int64())
    return [column.take(kept) for column in columns]


def decode_batch(raw: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
    """Decode one raw batch; the result has as many rows."""
    quick = decoder.quick(raw.column("value")) if isinstance(decoder, QuickDecoder) else None
    if quick is None or 2 * np.count_nonzero(quick.left) > raw.num_rows:
        return _decode_slices(raw, decoder)
    found = _batch(raw, decoder, quick.columns, pa.nulls(raw.num_rows, REASON))
    return _with_left_rows(found, raw, decoder, quick) if quick.left.any() else found


def _decode_slices(raw: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
    """Decode in slices: the Python objects of a whole batch do not fit into the processor's caches.

    Decoding JSON would take two and a half times as long.
    """
    parts = [_decode(raw.slice(begin, _SLICE), decoder) for begin in range(0, max(raw.num_rows, 1), _SLICE)]
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(one) for one in columns], schema=parts[0].schema)


def _with_left_rows(found: pa.RecordBatch, raw: pa.RecordBatch, decoder: Decoder, quick: Quick) -> pa.RecordBatch:
    """Decode the rows that the quick way left, and put them into their places.

    The result, including the texts of reasons, is that of decoding without the quick way. There, a row whose digits a
    double loses makes `decode` parse its whole slice again, so such a slice is decoded as a whole.
    """
    left = quick.left.copy()
    parts = [found]
    for begin in range(0, raw.num_rows, _SLICE):
        part = slice(begin, begin + _SLICE)
        if not left[part].any():
            continue
        if quick.inexact[part].any():
            left[part] = True
        parts.append(_decode(raw.take(pa.array(np.flatnonzero(left[part]) + begin)), decoder))
    places = np.arange(raw.num_rows)
    places[left] = raw.num_rows + np.arange(np.count_nonzero(left))
    rows = pa.array(places)
    own = {*decoder.columns.names, COLUMN}
    columns = [
        pa.concat_arrays([part.column(name) for part in parts]).take(rows) if name in own else found.column(name)
        for name in found.schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=found.schema)


def _decode(raw: pa.RecordBatch, decoder: Decoder) -> pa.RecordBatch:
    values = raw.column("value").to_pylist()
    found = _without_strange_dates(_decoded(values, decoder), decoder.columns)
    if found.unknown:
        unknown_fields.log_once(raw.column("topic"), found.unknown, decoder.unknown, _logged)
    bad = found.bad
    if decoder.nulls == "keep":
        bad = {number: one for number, one in bad.items() if values[number] is not None}
    return _batch(raw, decoder, found.columns, _reasons(raw, values, bad))


def _batch(raw: pa.RecordBatch, decoder: Decoder, columns: Sequence[pa.Array], reasons: pa.Array) -> pa.RecordBatch:
    schema = decoded_schema(raw.schema, decoder.columns)
    kept = [raw.column(name) for name in schema.names if name in raw.schema.names and name not in decoder.columns.names]
    return pa.RecordBatch.from_arrays([*kept, *columns, reasons], schema=schema)


def _decoded(values: Sequence[bytes | None], decoder: Decoder) -> Decoded:
    try:
        return decoder.decode(values)
    except (FetchError, MemoryError, OSError):  # possibly temporary, so the batch is retried
        raise
    except Exception as error:  # noqa: BLE001 -- the last resort: an unexpected value must not stop the batch
        if len(values) == 1:
            return Decoded([pa.nulls(1, one.type) for one in decoder.columns], {0: Bad("NotDecodable", _text(error))})
    # Decoding one value at a time finds the bad one.
    parts = [_decoded([value], decoder) for value in values]
    columns = [pa.concat_arrays(one) for one in zip(*(part.columns for part in parts), strict=True)]
    unknown: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        for path in part.unknown:
            unknown.setdefault(path, []).append(number)
    return Decoded(columns, {number: part.bad[0] for number, part in enumerate(parts) if part.bad}, unknown)


def _without_strange_dates(found: Decoded, columns: pa.Schema) -> Decoded:
    """Make rows bad whose date no partition column can have."""
    strange = rows_outside(found.columns, columns)
    if not strange:
        return found
    bad = {row: Bad("DateOutOfRange", f"{name} is outside the years 1 to 9999") for row, name in strange.items()}
    return Decoded(without_rows(found.columns, bad), {**bad, **found.bad}, found.unknown)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _reasons(raw: pa.RecordBatch, values: Sequence[bytes | None], bad: Mapping[int, Bad]) -> pa.Array:
    if not bad:
        return pa.nulls(raw.num_rows, REASON)
    rows: list[dict[str, object] | None] = [None] * raw.num_rows
    for number, one in bad.items():
        rows[number] = {
            "error_class": one.error,
            # Lone surrogates, which Python's texts may contain, cannot be encoded as UTF-8.
            "error_text": one.text[:_MOST_TEXT].encode(errors="replace").decode(),
            "schema_id": one.schema_id,
            "key": raw.column("key")[number].as_py(),
            "value": values[number],
            "headers": raw.column("headers")[number].as_py() if "headers" in raw.schema.names else None,
        }
    return pa.array(rows, REASON)
