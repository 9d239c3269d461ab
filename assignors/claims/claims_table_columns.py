"""The table of claims, whose times all come from the database's clock."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Double,
    FromClause,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    and_,
    literal,
    or_,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from assignors.claims import column_limits
from assignors.claims.claim_values import LONGEST_HOLD_S, MS

_LONGEST_MS = int(LONGEST_HOLD_S * MS)
BACK_MS = 10_000
"""If the time of a row is this far ahead of the database's clock, the row was written before the clock went back."""
_MYSQL = ("mysql", "mariadb")


class DatabaseNow(FunctionElement[int]):
    """Milliseconds since 1970 on the database's clock, the same throughout a statement."""

    name = "database_now"
    type = BigInteger()
    inherit_cache = True


@compiles(DatabaseNow, "postgresql")
def _postgresql(*_: object, **__: object) -> str:
    return "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)"


# Computed in UTC: UNIX_TIMESTAMP(NOW()) goes back an hour at the end of daylight saving time.
@compiles(DatabaseNow, "mysql")
@compiles(DatabaseNow, "mariadb")
def _mysql(*_: object, **__: object) -> str:
    return "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)"


@compiles(DatabaseNow, "sqlite")
def _sqlite(*_: object, **__: object) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


class Lesser(FunctionElement[int]):
    """The smaller of two numbers: `least`, which SQLite calls `min`."""

    name = "lesser"
    type = BigInteger()
    inherit_cache = True


@compiles(Lesser)
def _least(element: Lesser, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 -- the compiler's own
    return f"LEAST({compiler.process(element.clauses, **options)})"


@compiles(Lesser, "sqlite")
def _min(element: Lesser, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401 -- the compiler's own
    return f"MIN({compiler.process(element.clauses, **options)})"


def claims_table(name: str) -> Table:
    """Describe the table of claims; each set of jobs that share partitions has its own.

    Times are milliseconds by the database's clock. Names are compared byte by byte, because MySQL and MariaDB would
    otherwise treat the topics `a` and `A` as equal.

    Raises:
        ClaimsError: a name that not all databases accept.
    """
    column_limits.table_name(name)
    text: Any = String(190)
    topic: Any = String(249)
    for dialect in _MYSQL:
        text = text.with_variant(mysql.VARCHAR(190, charset="utf8mb4", collation="utf8mb4_bin"), dialect)
        topic = topic.with_variant(mysql.VARCHAR(249, charset="ascii", collation="ascii_bin"), dialect)
    return Table(
        name,
        MetaData(),
        Column("cluster", text, primary_key=True),
        Column("topic", topic, primary_key=True),
        Column("partition", Integer, primary_key=True, autoincrement=False),
        Column("owner", text),
        Column("lease_until", BigInteger, nullable=False, default=0),
        Column("hold_until", BigInteger, nullable=False, default=0),
        Column("epoch", BigInteger, nullable=False),
        Column("committed_offset", BigInteger),
        Column("volume", Double, nullable=False, default=0.0),
        Column("waited_ms", BigInteger),
        Column("last_picked_at", BigInteger),
        Column("due_at", BigInteger, nullable=False, default=0),
        Column("updated_at", BigInteger, nullable=False),
        # Claims read in this order: InnoDB locks each row that it examines, and a sort would examine all rows.
        Index(f"{name}_due", "cluster", "due_at"),
    )


def free(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that a partition is free: its lease has ended, or began before the clock went back."""
    ahead = table.c.lease_until > DatabaseNow() + _LONGEST_MS
    return or_(table.c.lease_until <= DatabaseNow(), ahead, _went_back(table))


def due(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that a partition is due, or that its due time was set before the clock went back."""
    ahead = table.c.due_at > DatabaseNow() + _LONGEST_MS
    return or_(table.c.due_at <= DatabaseNow(), ahead, _went_back(table))


def _went_back(table: FromClause) -> ColumnElement[bool]:
    return table.c.updated_at > DatabaseNow() + BACK_MS


def picked(table: Table, owner: str, lease_ms: int, hold_ms: int) -> list[tuple[Column[Any], Any]]:
    """Return the columns that a claim writes; MySQL evaluates left to right: `waited_ms` precedes `last_picked_at`."""
    now = DatabaseNow()
    return [
        (table.c.owner, literal(owner)),
        (table.c.epoch, table.c.epoch + 1),
        (table.c.lease_until, now + lease_ms),
        (table.c.hold_until, now + hold_ms),
        (table.c.waited_ms, now - table.c.last_picked_at),
        (table.c.last_picked_at, now),
        (table.c.due_at, now),
        (table.c.updated_at, now),
    ]


def held(table: Table, owner: str) -> ColumnElement[bool]:
    """Return the condition that this owner's lease has not ended; a lease from before the clock went back has."""
    return and_(
        table.c.owner == owner,
        table.c.lease_until > DatabaseNow(),
        table.c.updated_at <= DatabaseNow() + BACK_MS,
    )
