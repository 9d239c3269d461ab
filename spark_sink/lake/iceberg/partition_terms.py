"""The partitioning of an Iceberg table: its option, and the partition of each row. Pure, but for pyiceberg's values.

A term is a column, `day(column)` or `bucket(N, column)`; Spark's plural `days(column)` is the same. Files keep all
columns, and the metadata has the partition of each file.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import mmh3
import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.errors import OptionError, SchemaError
from spark_sink.lake.table_settings import Term

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

Value = str | int | bool | None
Values = tuple[Value, ...]

_TERM = re.compile(
    r"\s*(?:days?\(\s*(?P<day>[^(),]+?)\s*\)|bucket\(\s*(?P<count>\d+)\s*,\s*(?P<bucket>[^(),]+?)\s*\)|(?P<name>[^(),]+?))\s*"
)
_MOST_BUCKETS = 2**31 - 1
_DAY_US = 24 * 3600 * 10**6


def parse_terms(text: str) -> tuple[Term, ...]:
    """Read the option `partitionBy`: terms, by commas.

    Raises:
        OptionError: it has another form.
    """
    found: list[Term] = []
    for part in _split(text):
        match = _TERM.fullmatch(part)
        buckets = int(match["count"] or 0) if match else 0
        if match is None or (match["bucket"] and not 0 < buckets <= _MOST_BUCKETS):
            raise OptionError(
                f"option 'partitionBy': {part.strip()!r}, need a column, day(column) or bucket(N, column), by commas"
            )
        kind = "day" if match["day"] else "bucket" if match["bucket"] else "identity"
        found.append(Term(match["day"] or match["bucket"] or match["name"], kind, buckets))
    if len({one.name for one in found}) < len(found):
        raise OptionError(f"option 'partitionBy': {text!r} has a term twice")
    return tuple(found)


def check_terms(columns: pa.Schema, terms: Sequence[Term]) -> None:
    """Check that rows with these columns can be partitioned.

    Raises:
        SchemaError: a column is missing, or the transform does not take its type.
    """
    for term in terms:
        if term.column not in columns.names:
            raise SchemaError(f"partition column {term.column!r} is not among the columns {columns.names}")
        kind = columns.field(term.column).type
        if not _takes(term, kind):
            raise SchemaError(f"partitionBy: {term} does not take a column of type {kind}")


def spec_of(terms: Sequence[Term], schema: "Schema") -> "PartitionSpec":
    """Return the partitioning for a new table.

    Args:
        terms: that `check_terms` accepts.
        schema: of the new table, with field ids.
    """
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
    from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform

    def field(at: int, term: Term) -> PartitionField:
        kinds = {"identity": IdentityTransform, "day": DayTransform}
        transform = BucketTransform(term.buckets) if term.buckets else kinds[term.transform]()
        source = schema.find_field(term.column).field_id
        return PartitionField(source, PARTITION_FIELD_ID_START + at, transform, term.name)

    return PartitionSpec(*(field(at, term) for at, term in enumerate(terms)))


def terms_of(spec: "PartitionSpec", schema: "Schema") -> tuple[Term, ...] | None:
    """Return the terms of a table; None if a transform is not supported here."""
    found: list[Term] = []
    for one in spec.fields:
        match = re.fullmatch(r"(identity|day|bucket)(?:\[(\d+)\])?", str(one.transform))
        column = schema.find_column_name(one.source_id)
        if match is None or column is None or "." in column:
            return None
        found.append(Term(column, match[1], int(match[2] or 0)))
    return tuple(found)


def partitioned(rows: pa.Table, terms: Sequence[Term]) -> Iterator[tuple[Values, pa.Table]]:
    """Yield the rows of each partition, with its values; all rows with no values if there are no terms."""
    if not terms:
        yield (), rows
        return
    keys = pa.table({str(at): transformed(rows.column(term.column), term) for at, term in enumerate(terms)})
    for found in keys.group_by(keys.column_names, use_threads=False).aggregate([]).to_pylist():
        hits = None
        for name in keys.column_names:
            column, wanted = keys.column(name), found[name]
            hit = pc.is_null(column) if wanted is None else pc.fill_null(pc.equal(column, wanted), fill_value=False)
            hits = hit if hits is None else pc.and_(hits, hit)
        yield tuple(found.values()), rows.filter(hits)


def transformed(column: pa.ChunkedArray, term: Term) -> pa.ChunkedArray:
    """Return the partition values of a column.

    Source: the table specification of Iceberg, "Partition Transforms" and appendix B (hashes by Murmur3, 32 bits).
    """
    kind = column.type
    if term.transform == "day":
        if pa.types.is_date32(kind):
            return column.cast(pa.int32())
        return _days(column.cast(pa.int64()))
    if term.transform == "identity":
        return column.cast(pa.int32()) if pa.types.is_date32(kind) else column
    plain = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
    plain = plain.cast(pa.int64()) if not _is_bytes(plain.type) else plain
    encoded = plain.combine_chunks().dictionary_encode() if isinstance(plain, pa.ChunkedArray) else plain
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    buckets = pa.array([_bucket(one, term.buckets) for one in encoded.dictionary.to_pylist()], pa.int32())
    return pa.chunked_array([buckets.take(encoded.indices)])


def _days(microseconds: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow's division rounds towards zero; a day before 1970 is the one below.
    whole = pc.divide(microseconds, _DAY_US)
    below = pc.less(pc.subtract(microseconds, pc.multiply(whole, _DAY_US)), 0)
    return pc.subtract(whole, below.cast(pa.int64())).cast(pa.int32())


def _bucket(value: str | bytes | int | None, count: int) -> int | None:
    if value is None:
        return None
    data = value.encode() if isinstance(value, str) else value
    data = data.to_bytes(8, "little", signed=True) if isinstance(data, int) else data
    return int((mmh3.hash(data) & 0x7FFFFFFF) % count)


def _takes(term: Term, kind: pa.DataType) -> bool:
    time = pa.types.is_timestamp(kind) or pa.types.is_date32(kind)
    if term.transform == "day":
        return bool(time)
    whole = pa.types.is_int32(kind) or pa.types.is_int64(kind)
    if term.transform == "bucket":
        return bool(time or whole or _is_bytes(kind))
    return bool(whole or pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts = re.split(r",(?![^(]*\))", text)
    return [one for one in parts if one.strip()]
