"""Checks that the Delta table has every flight once, unchanged; reads only the table."""

from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_sink.lake.holes_and_doubles import Finding, verify

_COLUMNS = ("topic", "key", "value")
_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of the check.

    Attributes:
        rows: number of rows in the table.
        duplicates: rows whose (topic, partition, offset) another row has already.
        missing: offsets that should be in the table and are not.
        values_differ: flights that are missing, or differ in topic, key or value from the data set.
        findings: sentences about the first missing or duplicate rows.
    """

    rows: int
    duplicates: int
    missing: int
    values_differ: int
    findings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the table has every flight once, unchanged."""
        return not (self.duplicates or self.missing or self.values_differ)

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values."""
        return {**asdict(self), "findings": list(self.findings), "ok": self.ok}


def verify_flights(table: Path, flights: pa.Table) -> Verdict:
    """Compare a table with the data set.

    Args:
        table: the Delta table's folder.
        flights: topic, key, value of every record sent.
    """
    report = verify(str(table))
    stored = DeltaTable(str(table)).to_pyarrow_table(columns=list(_COLUMNS))
    findings = [sentence for finding in report.findings for sentence in _sentences(finding)]
    return Verdict(
        rows=report.rows,
        duplicates=report.duplicates,
        missing=report.missing + max(0, flights.num_rows - report.rows + report.duplicates - report.missing),
        values_differ=count_different(stored, flights),
        findings=tuple(findings[:_NAMED]),
    )


def count_different(stored: pa.Table, flights: pa.Table) -> int:
    """Count the flights that the stored rows do not have exactly once with the same topic, key and value.

    Args:
        stored: topic, key, value, in any order.
        flights: the same columns; every value is unique.
    """
    have, want = (_sorted(t) for t in (stored, flights))
    if have.equals(want):
        return 0
    rows = [list(zip(*(t.column(c).to_pylist() for c in _COLUMNS), strict=True)) for t in (have, want)]
    return len(set(rows[1]) ^ set(rows[0])) or abs(len(rows[0]) - len(rows[1]))


def _sorted(table: pa.Table) -> pa.Table:
    plain = table.select(_COLUMNS).cast(
        pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
    )
    return plain.take(pc.sort_indices(plain, sort_keys=[("value", "ascending")])).combine_chunks()


def _sentences(finding: Finding) -> list[str]:
    place = f"{finding.topic}/{finding.partition}"
    found = [f"{place}: offsets {first} to {end - 1} are missing" for first, end in finding.holes]
    return found + [f"{place}: offsets {first} to {end - 1} are there twice" for first, end in finding.doubles]
