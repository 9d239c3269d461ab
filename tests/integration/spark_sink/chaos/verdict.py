"""Each acknowledged record is in exactly one of table and quarantine, with its values: asked of DuckDB."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from tests.integration.spark_sink.chaos import delta_by_duckdb, iceberg_by_duckdb
from tests.integration.spark_sink.chaos.delta_by_duckdb import view

_KEY = 'topic, "partition", "offset"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the records.

    Attributes:
        records: acknowledged.
        lost: in neither table nor quarantine.
        doubled: rows too many.
        misplaced: in the quarantine though they belong in the table, or the other way round.
        wrong: other values than were produced.
        strangers: rows of records that were never acknowledged.
        quarantined: rows in the quarantine.
    """

    records: int
    lost: int
    doubled: int
    misplaced: int
    wrong: int
    strangers: int
    quarantined: int

    @property
    def ok(self) -> bool:
        """Every record once, in its place, as it was produced."""
        return not (self.lost or self.doubled or self.misplaced or self.wrong or self.strangers)

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in asdict(self).items())


def judge(root: Path, ledger: pa.Table, *, coupons: bool = True) -> Verdict:
    """Compare all tables below a folder with what was produced.

    Args:
        root: folder of the tables.
        ledger: as `Stream.ledger` gives it.
        coupons: the field that comes in mid-run has to be there.
    """
    with duckdb.connect() as connection:
        reader = iceberg_by_duckdb if iceberg_by_duckdb.catalog(root).exists() else delta_by_duckdb
        columns = view(connection, "good", reader.good_files(connection, root))
        view(connection, "bad", reader.bad_files(connection, root))
        connection.register("acknowledged", ledger)
        connection.execute(
            f"CREATE TABLE ledger AS SELECT *, "
            f"(SELECT count(*) FROM good g WHERE {_same('g')}) AS in_table, "
            f"(SELECT count(*) FROM bad b WHERE {_same('b')}) AS in_quarantine FROM acknowledged l"
        )
        wrong = " OR ".join(f"({one})" for one in _differences(columns, coupons=coupons))

        def count(of: str) -> int:
            row = connection.execute(f"SELECT coalesce(sum(n), 0)::BIGINT FROM ({of})").fetchone()
            return int(row[0]) if row else 0

        return Verdict(
            records=ledger.num_rows,
            lost=count("SELECT 1 AS n FROM ledger WHERE in_table + in_quarantine = 0"),
            doubled=count("SELECT in_table + in_quarantine - 1 AS n FROM ledger WHERE in_table + in_quarantine > 1"),
            misplaced=count("SELECT CASE home WHEN 'table' THEN in_quarantine ELSE in_table END AS n FROM ledger"),
            wrong=count(f"SELECT 1 AS n FROM ledger l JOIN good g ON {_same('g')} WHERE {wrong}")
            + count(f"SELECT 1 AS n FROM ledger l JOIN bad b ON {_same('b')} WHERE b.value IS DISTINCT FROM l.value"),
            strangers=count(f"SELECT 1 AS n FROM (FROM good SELECT {_KEY}) ANTI JOIN ledger USING ({_KEY})")
            + count(f"SELECT 1 AS n FROM (FROM bad SELECT {_KEY}) ANTI JOIN ledger USING ({_KEY})"),
            quarantined=count("SELECT 1 AS n FROM bad"),
        )


def _same(rows: str) -> str:
    return " AND ".join(f'{rows}."{name}" = l."{name}"' for name in ("topic", "partition", "offset"))


def _differences(columns: Sequence[str], *, coupons: bool) -> list[str]:
    """Conditions under which a row of the table `g` is not the record `l`."""
    found = ["g.key IS DISTINCT FROM l.key"] if "key" in columns else []
    if "headers" in columns:
        found.append("len(g.headers) <> 1 OR g.headers[1].key <> 'n' OR g.headers[1].value IS DISTINCT FROM l.key")
    if "number" not in columns:
        return [*found, "g.value IS DISTINCT FROM l.value"]
    found += [f"g.{name} IS DISTINCT FROM l.{name}" for name in ("number", "name", "amount")]
    found.append("g.place.zone IS DISTINCT FROM l.zone")
    places = ["g.coupon"] if "coupon" in columns else []
    places += ["g._rescued->>'$.coupon'"] if "_rescued" in columns else []
    if coupons:
        found.append(f"coalesce({', '.join([*places, 'NULL'])}) IS DISTINCT FROM l.coupon")
    return found
