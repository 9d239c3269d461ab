"""Checks before a start whether a job can keep its claims in a database; writes nothing."""

import os
from pathlib import Path

from sqlalchemy import Connection, Table, delete, false, insert, inspect, select, text, update

from assignors.claims.claim_values import Lease
from assignors.claims.claims_table_columns import claims_table
from assignors.claims.database import Database
from assignors.errors import ClaimsError


def check_claims(address: str, table: str = "partition_claims") -> str:
    """Check that the database answers, and that its table of claims can be read and written, or created.

    Args:
        address: SQLAlchemy's.
        table: table of the claims.

    Returns:
        One clause with the database and the state of the table.

    Raises:
        ClaimsAwayError: the database does not answer.
        ClaimsError: the address is invalid, the database refuses the user, or the table is one of another program.
    """
    described = claims_table(table)
    database = Database(address, Lease().lease_s, reads=True)
    try:
        if (file := database.file) is not None and not _is_there(database.name, file):
            return f"{database.name}: new; the first job creates it"
        there = database.ask(lambda connection: _exists(connection, described, database.name))
    finally:
        database.close()
    return f"{database.name}: table {table!r} {'exists' if there else 'is new; the first job creates it'}"


def _is_there(name: str, file: Path) -> bool:
    """Return whether the file exists; a folder in which none can be created is refused."""
    try:
        if file.is_dir():
            raise ClaimsError(f"{name}: {file} is a folder; name a file in it")
        if file.exists():
            return True
    except OSError as error:
        raise ClaimsError(f"{name}: this user may not look into {file.absolute().parent}: {error.strerror}") from error
    _refuse_folder(name, file.absolute().parent)
    return False


def _refuse_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        raise ClaimsError(f"{name}: there is no folder {folder}; create it")
    if not os.access(folder, os.W_OK):
        raise ClaimsError(f"{name}: this user may not write in {folder}; allow it, or name another file")


def _exists(connection: Connection, table: Table, name: str) -> bool:
    """Return whether the table exists.

    Raises:
        ClaimsError: it is a table of another program, or it does not exist and the user may not create it.
    """
    found = inspect(connection)
    if not found.has_table(table.name):
        _refuse_creation(connection, table, name)
        return False
    missing = sorted({one.name for one in table.columns} - {one["name"] for one in found.get_columns(table.name)})
    if missing:
        raise ClaimsError(
            f"{name}: table {table.name!r} is not a table of claims, it has no column {missing[0]!r}; name another one"
        )
    # The database checks the rights for a statement even if no row matches its condition.
    columns = table.columns
    connection.execute(insert(table).from_select(list(columns), select(*columns).where(false())))
    connection.execute(update(table).where(false()).values(epoch=columns.epoch))
    connection.execute(delete(table).where(false()))
    return True


def _refuse_creation(connection: Connection, table: Table, name: str) -> None:
    if connection.dialect.name != "postgresql":  # the others have no question for it
        return
    if not connection.scalar(text("SELECT has_schema_privilege(current_schema(), 'CREATE')")):
        raise ClaimsError(
            f"{name}: there is no table {table.name!r}, and this user may not create it; create it with another user, "
            "or grant CREATE on the schema"
        )
