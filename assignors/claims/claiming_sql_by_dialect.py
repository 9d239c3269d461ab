"""The forms of claiming: each takes the free partitions that have been due longest, and no two owners get the same one.

* PostgreSQL, one statement: `UPDATE ... FROM (SELECT ... FOR UPDATE SKIP LOCKED) RETURNING`.
* MariaDB, one statement: `INSERT ... SELECT ... FOR UPDATE SKIP LOCKED ON DUPLICATE KEY UPDATE ... RETURNING`, because
  it cannot return the rows that an UPDATE changed.
* SQLite: `BEGIN IMMEDIATE; UPDATE ... RETURNING; COMMIT`.
* MySQL, which cannot return rows of either: `SELECT ... FOR UPDATE SKIP LOCKED; UPDATE; SELECT; COMMIT`.
"""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, and_, select, tuple_, update
from sqlalchemy.dialects import mysql

from assignors.claims.claim_values import Claim, Form, Lease
from assignors.claims.claims_table_columns import DatabaseNow, due, free, picked
from assignors.claims.database import Database

Claiming = Callable[[int], list[Claim]]

_KEPT = 256
_SPREAD = 4
_LOOKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The parameters of all claims of one process.

    Attributes:
        table: the table of claims.
        cluster: the cluster of the topics.
        owner: unique to one process.
        lease: duration of a claim.
    """

    table: Table
    cluster: str
    owner: str
    lease: Lease

    def candidates(self, most: int, *columns: str) -> Select[Any]:
        """Select free and due partitions, the longest due first.

        Rows are read in the order of the index, so that InnoDB locks only the rows that it examines. The table has an
        alias: if a statement also writes to the table, MariaDB must distinguish the two references.
        """
        seen = self.table.alias("candidate")
        chosen = select(*(seen.c[name] for name in columns))
        chosen = chosen.where(seen.c.cluster == self.cluster, free(seen), due(seen))
        for dialect in ("mysql", "mariadb"):
            chosen = chosen.with_hint(seen, f"FORCE INDEX ({self.table.name}_due)", dialect)
        return chosen.order_by(seen.c.due_at).limit(most)

    @property
    def values(self) -> list[tuple[Any, Any]]:
        """Return the columns and values that a claim writes."""
        return picked(self.table, self.owner, self.lease.lease_ms, self.lease.hold_ms)

    @property
    def returned(self) -> tuple[Any, ...]:
        """Return the columns of a `Claim`."""
        table = self.table
        return (
            table.c.topic,
            table.c.partition,
            table.c.epoch,
            table.c.committed_offset,
            table.c.volume,
            table.c.waited_ms,
        )


def claiming(form: Form, database: Database, scope: Scope) -> Claiming:
    """Choose the form of claiming.

    Raises:
        ClaimsAwayError: the database does not answer.
        ClaimsError: it refuses.
    """
    if form is Form.OPTIMISTIC:
        return Optimistic(database, scope)
    dialect = database.dialect
    if dialect == "postgresql" and form is Form.LOCKING:
        return OneStatement(database.ask, _postgresql(scope))
    if dialect == "mariadb" and form is Form.LOCKING:
        return OneStatement(database.ask, _mariadb(scope))
    if dialect == "sqlite":
        return OneStatement(database.transaction, _sqlite(scope))
    return TwoSteps(database, scope)


class OneStatement:
    """Claim with one statement, which is compiled for a number of partitions."""

    def __init__(
        self, ask: Callable[[Callable[[Connection], list[Claim]]], list[Claim]], statement: Callable[[int], Any]
    ) -> None:
        self._ask = ask
        self._statement = functools.lru_cache(_KEPT)(statement)  # building it takes longer than running it

    def __call__(self, most: int) -> list[Claim]:
        """Claim at most this many."""
        return self._ask(
            lambda connection: sorted(_claim(row) for row in connection.execute(self._statement(most)).all())
        )


class TwoSteps:
    """Lock rows, then write them."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope

    def __call__(self, most: int) -> list[Claim]:
        """Claim at most this many."""
        return sorted(self._database.transaction(lambda connection: self._claim(connection, most)))

    def _claim(self, connection: Connection, most: int) -> list[Claim]:
        scope, table = self._scope, self._scope.table
        locked = scope.candidates(most, "topic", "partition").with_for_update(skip_locked=True)
        keys = connection.execute(locked).all()
        if not keys:
            return []
        mine = and_(
            table.c.cluster == scope.cluster, tuple_(table.c.topic, table.c.partition).in_([tuple(key) for key in keys])
        )
        connection.execute(update(table).where(mine).ordered_values(*scope.values))
        return [_claim(row) for row in connection.execute(select(*scope.returned).where(mine))]


class Optimistic:
    """Read rows, then write those that no other owner has changed in between.

    All jobs see the same oldest partitions, so each job draws from several times as many as it wants: otherwise all
    jobs except one would lose.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope
        self._random = random.Random()  # noqa: S311 -- spreads concurrent jobs

    def __call__(self, most: int) -> list[Claim]:
        """Claim at most `most`; fewer if other jobs were faster in every attempt."""
        won: list[Claim] = []
        for _ in range(_LOOKS):
            wanted = most - len(won)
            seen = self._look(wanted * _SPREAD)
            if not seen:
                break
            won += self._try(self._random.sample(seen, min(wanted, len(seen))))
            if len(won) == most:
                break
        return sorted(won)

    def _look(self, most: int) -> Sequence[RowMapping]:
        columns = ("topic", "partition", "epoch", "committed_offset", "volume", "updated_at", "last_picked_at")
        asked = self._scope.candidates(most, *columns).add_columns(DatabaseNow().label("now"))
        return self._database.ask(lambda connection: connection.execute(asked).mappings().all())

    def _try(self, seen: Sequence[RowMapping]) -> list[Claim]:
        return self._database.ask(lambda connection: [_won(row) for row in seen if self._write(connection, row)])

    def _write(self, connection: Connection, row: RowMapping) -> bool:
        scope, table = self._scope, self._scope.table
        unchanged = and_(
            table.c.cluster == scope.cluster,
            table.c.topic == row["topic"],
            table.c.partition == row["partition"],
            table.c.updated_at == row["updated_at"],
            # `updated_at` is not enough: two writes may have the same millisecond. No two claims have the same epoch.
            table.c.epoch == row["epoch"],
            free(table),
        )
        return connection.execute(update(table).where(unchanged).ordered_values(*scope.values)).rowcount == 1


def _won(row: RowMapping) -> Claim:
    picked_at = row["last_picked_at"]
    waited_s = None if picked_at is None else (row["now"] - picked_at) / 1000
    return Claim(row["topic"], row["partition"], row["epoch"] + 1, row["committed_offset"], row["volume"], waited_s)


def _claim(row: Any) -> Claim:  # noqa: ANN401 -- a row of SQLAlchemy
    topic, partition, epoch, committed_offset, volume, waited_ms = row
    waited_s = None if waited_ms is None else waited_ms / 1000
    return Claim(topic, partition, epoch, committed_offset, volume, waited_s)


def _postgresql(scope: Scope) -> Callable[[int], Any]:
    table = scope.table

    def statement(most: int) -> Any:  # noqa: ANN401 -- SQLAlchemy's own
        # PostgreSQL may run a subquery in WHERE more than once, but not a FROM item that locks rows.
        locked = scope.candidates(most, "topic", "partition").with_for_update(skip_locked=True).cte("free")
        mine = and_(
            table.c.cluster == scope.cluster,
            table.c.topic == locked.c.topic,
            table.c.partition == locked.c.partition,
        )
        return update(table).where(mine).ordered_values(*scope.values).returning(*scope.returned)

    return statement


def _sqlite(scope: Scope) -> Callable[[int], Any]:
    table = scope.table

    def statement(most: int) -> Any:  # noqa: ANN401 -- SQLAlchemy's own
        chosen = scope.candidates(most, "topic", "partition")
        mine = and_(table.c.cluster == scope.cluster, tuple_(table.c.topic, table.c.partition).in_(chosen))
        return update(table).where(mine).ordered_values(*scope.values).returning(*scope.returned)

    return statement


def _mariadb(scope: Scope) -> Callable[[int], Any]:
    table = scope.table
    needed = ("cluster", "topic", "partition", "epoch", "updated_at", "lease_until", "hold_until", "volume", "due_at")

    def statement(most: int) -> Any:  # noqa: ANN401 -- SQLAlchemy's own
        locked = scope.candidates(most, *needed)
        again = mysql.insert(table).from_select(list(needed), locked.with_for_update(skip_locked=True), False)  # noqa: FBT003 -- no defaults
        return again.on_duplicate_key_update([(column.name, value) for column, value in scope.values]).returning(
            *scope.returned
        )

    return statement
