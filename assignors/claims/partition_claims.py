"""Partitions claimed by rows of a database."""

import os
import socket
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Update,
    and_,
    bindparam,
    delete,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite

from assignors.claims import column_limits
from assignors.claims.claim_status import standings_of
from assignors.claims.claim_values import Claim, Form, Lease, Standing, Visit
from assignors.claims.claiming_sql_by_dialect import Claiming, Scope, claiming
from assignors.claims.claims_table_columns import DatabaseNow, Lesser, claims_table, held
from assignors.claims.database import Database
from assignors.claims.due_times import Picking
from assignors.errors import ClaimLostError

_MYSQL = frozenset({"mysql", "mariadb"})
_NAMED = 3


class PartitionClaims:
    """Claims on the partitions of one Kafka cluster, for one process.

    Contract:
    * A partition has one holder at a time, and each claim of it has a higher epoch than all previous ones.
    * `commit`, `renew` and `disown` write only for the owner, under its epoch, until its lease ends; a lost claim stays
      lost. All times are the database's; the clock of this process has no effect.
    * Only these calls write, so a process that is stopped or killed between two calls holds no lock. A process that is
      stopped within a call may hold a lock; the effect on others depends on the database (see `database`).
    * An unreachable database raises `ClaimsAwayError`; the next call connects again. A claim whose answer was lost
      ends with its lease.
    * Calls block on the database. Threads may share an instance; processes may not (create it after a fork).

    Args:
        address: SQLAlchemy's, such as `sqlite:///claims.db`, `postgresql://user@host/database`, `mariadb://...`.
        cluster: the cluster's own id.
        owner: name for others, made unique by a suffix. The default is the host and the process.
        lease: duration of a claim.
        picking: order in which partitions are claimed.
        form: form of claiming.
        table: name of the table: one for each set of jobs that share the work.

    Raises:
        ClaimsError: the address is invalid, its driver is missing, or a name cannot be stored.
    """

    def __init__(  # noqa: PLR0913 -- each with a default, and none belongs to another
        self,
        address: str,
        *,
        cluster: str,
        owner: str | None = None,
        lease: Lease | None = None,
        picking: Picking | None = None,
        form: Form = Form.LOCKING,
        table: str = "partition_claims",
    ) -> None:
        column_limits.text("cluster", cluster)
        self.lease = lease or Lease()
        self.picking = picking or Picking()
        self.owner = f"{owner or f'{socket.gethostname()}-{os.getpid()}'}/{uuid.uuid4().hex[:8]}"
        column_limits.text("owner", self.owner)
        self._cluster = cluster
        self._form = form
        self._table = claims_table(table)
        self._database = Database(address, self.lease.lease_s)
        self._claiming: Claiming | None = None
        # Built once, because building a statement takes longer than running it.
        freed = {"owner": None, "lease_until": 0, "updated_at": DatabaseNow()}
        until = Lesser(DatabaseNow() + self.lease.lease_ms, self._table.c.hold_until)
        renewed = {"lease_until": until, "updated_at": DatabaseNow()}
        due_at = self._table.c.last_picked_at + bindparam("pause_ms", type_=BigInteger)
        self._freed = self._update(freed)
        self._returned = self._update(freed | {"volume": bindparam("new_volume"), "due_at": due_at})
        self._renewed = self._update(renewed)
        self._committed = self._update(renewed | {"committed_offset": bindparam("offset")})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def register(self, partitions: Iterable[tuple[str, int]]) -> int:
        """Register partitions, and create the table if there is none; registered partitions do not change.

        Returns:
            Number of new partitions.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses, or no topic has such a name or partition.
        """
        wanted = {column_limits.partition(*one) for one in partitions}
        self._database.ask(self._create)
        new = wanted - self._database.ask(self._known)
        if not new:
            return 0
        rows = [{"cluster": self._cluster, "topic": topic, "partition": number} for topic, number in sorted(new)]
        self._database.transaction(lambda connection: self._insert(connection, rows))
        return len(new)

    def forget(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Remove partitions that no longer exist, with their claims.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses, or no topic has such a name or partition.
        """
        gone = sorted({column_limits.partition(*one) for one in partitions})
        self._database.ask(
            lambda connection: [connection.execute(delete(self._table).where(self._row(*one))) for one in gone]
        )

    def known(self) -> set[tuple[str, int]]:
        """The partitions of this cluster that are registered.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses.
        """
        return self._database.ask(self._known)

    def hasten(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Make partitions due now, whatever their last visits have expected; claims of others stay.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses, or no topic has such a name or partition.
        """
        wanted = sorted({column_limits.partition(*one) for one in partitions})
        due_at = self._table.c.due_at

        def write(connection: Connection) -> None:
            for one in wanted:
                later = update(self._table).where(self._row(*one), due_at > DatabaseNow())
                connection.execute(later.values(due_at=DatabaseNow()))

        self._database.ask(write)

    def claim(self, most: int) -> list[Claim]:
        """Claim free partitions that are due, the longest due first.

        Returns:
            Up to `most`, sorted; empty if all are held or none is due.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses, or `most` is not a whole number of 1 or more.
        """
        most = column_limits.whole("most", most, 1, column_limits.MOST_32)
        if self._claiming is None:
            scope = Scope(table=self._table, cluster=self._cluster, owner=self.owner, lease=self.lease)
            self._claiming = claiming(self._form, self._database, scope)
        return self._claiming(most)

    def commit(self, offsets: Mapping[Claim, int]) -> None:
        """Commit the positions of partitions, and renew their leases.

        Raises:
            ClaimLostError: some claims are lost; the others are committed. `lost` names the lost ones.
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses, or an offset is invalid; then nothing is committed.
        """
        self._refuse(self._guarded(self._committed, {one: {"offset": _offset(one, at)} for one, at in offsets.items()}))

    def renew(self, claims: Iterable[Claim]) -> list[Claim]:
        """Renew leases, up to the longest hold.

        Returns:
            The claims that are still held.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses.
        """
        wanted: dict[Claim, dict[str, Any]] = {one: {} for one in claims}
        lost = self._guarded(self._renewed, wanted)
        return sorted(wanted.keys() - set(lost))

    def disown(self, visits: Mapping[Claim, Visit] | Collection[Claim]) -> list[Claim]:
        """Release partitions; a `Visit` decides when the partition is due again.

        Returns:
            The claims that were already lost; nothing was written for them.

        Raises:
            ClaimsAwayError: the database does not answer; the partitions are free when their leases end.
            ClaimsError: it refuses.
        """
        if isinstance(visits, Mapping):
            return self._guarded(self._returned, {one: self._due(one, visit) for one, visit in visits.items()})
        return self._guarded(self._freed, {one: {} for one in visits})

    def standings(self) -> list[Standing]:
        """Return the status of each partition of this cluster.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses.
        """
        return standings_of(self._database, self._table, self._table.c.cluster == self._cluster)

    def close(self) -> None:
        """Disown all partitions of this owner, and close the connections.

        Raises:
            ClaimsAwayError: the database does not answer; the partitions are free when their leases end.
        """
        mine = and_(self._table.c.cluster == self._cluster, self._table.c.owner == self.owner)
        try:
            if self._claiming is not None:
                freed = update(self._table).where(mine).values(owner=None, lease_until=0, updated_at=DatabaseNow())
                self._database.ask(lambda one: one.execute(freed))
        finally:
            self._database.close()

    def _guarded(self, statement: Update, values: Mapping[Claim, Mapping[str, Any]]) -> list[Claim]:
        """Write under each claim's epoch, and return the lost claims.

        Each claim has its own statement: none waits for a lock while it holds one, and no lock outlives a round trip.
        """
        named = {one: _names(one) for one in values}
        # MySQL's own count leaves out rows that did not change; SQLAlchemy makes it count the rows found.
        return self._database.ask(
            lambda connection: [
                one
                for one in sorted(named)
                if connection.execute(statement, {**named[one], **values[one]}).rowcount != 1
            ]
        )

    def _update(self, values: Mapping[str, Any]) -> Update:
        """Build the update for a held claim; its names are parameters."""
        columns = self._table.c
        mine = and_(
            columns.cluster == self._cluster,
            columns.topic == bindparam("of_topic"),
            columns.partition == bindparam("of_partition"),
            columns.epoch == bindparam("of_epoch"),
            held(self._table, self.owner),
        )
        return update(self._table).where(mine).values(values)

    def _due(self, claim: Claim, visit: Visit) -> dict[str, Any]:
        volume = self.picking.volume(claim.volume, visit, claim.waited_s)
        return {"new_volume": volume, "pause_ms": self.picking.pause_ms(volume, visit)}

    def _row(self, topic: str, partition: int) -> ColumnElement[bool]:
        columns = self._table.c
        return and_(columns.cluster == self._cluster, columns.topic == topic, columns.partition == partition)

    def _refuse(self, lost: list[Claim]) -> None:
        if lost:
            names = ", ".join(f"{one.topic}/{one.partition} (epoch {one.epoch})" for one in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            raise ClaimLostError(
                f"{names}{more}: not held by {self.owner} any more, nothing was committed for it; claim again", lost
            )

    def _create(self, connection: Connection) -> None:
        self._table.metadata.create_all(connection)

    def _known(self, connection: Connection) -> set[tuple[str, int]]:
        columns = self._table.c
        asked = select(columns.topic, columns.partition).where(columns.cluster == self._cluster)
        return {(topic, partition) for topic, partition in connection.execute(asked)}

    def _insert(self, connection: Connection, rows: list[dict[str, Any]]) -> None:
        now = connection.execute(select(DatabaseNow())).scalar_one()
        # Epochs start at the current time, so a partition that is forgotten and registered again never repeats one.
        full = [row | {"epoch": now, "updated_at": now, "lease_until": 0, "hold_until": 0} for row in rows]
        connection.execute(_quiet_insert(connection, self._table), full)


def _names(claim: Claim) -> dict[str, Any]:
    topic, partition = column_limits.partition(claim.topic, claim.partition)
    epoch = column_limits.whole(f"{topic}/{partition}: epoch", claim.epoch, 0, column_limits.MOST_64)
    return {"of_topic": topic, "of_partition": partition, "of_epoch": epoch}


def _offset(claim: Claim, offset: int) -> int:
    return column_limits.whole(f"{claim.topic}/{claim.partition}: offset", offset, 0, column_limits.MOST_64)


def _quiet_insert(connection: Connection, table: Any) -> Any:  # noqa: ANN401 -- SQLAlchemy's own
    """Insert, and leave existing rows unchanged."""
    if connection.dialect.name in _MYSQL:
        return mysql.insert(table).prefix_with("IGNORE")
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()
