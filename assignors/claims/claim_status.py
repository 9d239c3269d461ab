"""How partitions stand, for who only looks."""

from sqlalchemy import ColumnElement, RowMapping, Table, select, true

from assignors.claims.claim_values import MS, Lease, Standing
from assignors.claims.claims_table import BACK_MS, DatabaseNow, claims_table
from assignors.claims.database import Database
from assignors.errors import ClaimsError


def standings(address: str, table: str = "partition_claims") -> list[Standing]:
    """How each partition of every cluster stands, for who only looks.

    Raises:
        ClaimsAwayError: the database does not answer.
        ClaimsError: it refuses, or the address has no meaning, or names a file that is not there.
    """
    described = claims_table(table)
    database = Database(address, Lease().lease_s, reads=True)
    if (file := database.file) is not None and not file.exists():
        # SQLite would make it, and say that it holds no such table.
        raise ClaimsError(f"{database.name}: there is no such file; the first job makes it")
    try:
        return standings_of(database, described, true())
    finally:
        database.close()


def standings_of(database: Database, table: Table, which: ColumnElement[bool]) -> list[Standing]:
    """How each partition stands that a condition admits, sorted.

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
