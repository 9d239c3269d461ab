"""The status of partitions, for programs that only read."""

from sqlalchemy import ColumnElement, RowMapping, Table, select, true

from assignors.claims.claim_values import MS, Lease, Standing
from assignors.claims.claims_table_columns import BACK_MS, DatabaseNow, claims_table
from assignors.claims.database import Database
from assignors.errors import ClaimsError


def standings(address: str, table: str = "partition_claims") -> list[Standing]:
    """Return the status of each partition of every cluster; writes nothing.

    Raises:
        ClaimsAwayError: the database does not answer.
        ClaimsError: it refuses, or the address is invalid, or names a file that does not exist.
    """
    described = claims_table(table)
    database = Database(address, Lease().lease_s, reads=True)
    if (file := database.file) is not None and not file.exists():
        # SQLite would create the file, and report that it has no such table.
        raise ClaimsError(f"{database.name}: there is no such file; the first job makes it")
    try:
        return standings_of(database, described, true())
    finally:
        database.close()


def standings_of(database: Database, table: Table, which: ColumnElement[bool]) -> list[Standing]:
    """Return the status of each partition that fulfils a condition, sorted.

    Raises:
        ClaimsAwayError: the database does not answer.
        ClaimsError: it refuses.
    """
    columns = table.c
    asked = select(table, DatabaseNow().label("now")).where(which)
    asked = asked.order_by(columns.cluster, columns.topic, columns.partition)
    return [_standing(row) for row in database.ask(lambda one: one.execute(asked).mappings().all())]


def _standing(row: RowMapping) -> Standing:
    now, until = row["now"], row["lease_until"]
    is_held = now < until and row["updated_at"] <= now + BACK_MS
    free_ms = 0 if is_held else max(0, now - (until or row["updated_at"]))
    return Standing(
        cluster=row["cluster"],
        topic=row["topic"],
        partition=row["partition"],
        owner=row["owner"],
        held=is_held,
        lease_s=(until - now) / MS if until else 0.0,
        free_s=free_ms / MS,
        due_s=(row["due_at"] - now) / MS,
        picked_s=None if row["last_picked_at"] is None else (now - row["last_picked_at"]) / MS,
        epoch=row["epoch"],
        committed_offset=row["committed_offset"],
        volume=row["volume"],
    )
