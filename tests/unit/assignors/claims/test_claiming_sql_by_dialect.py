"""The statements by dialect, as text, tested without a server; the integration tests run them."""

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite

from assignors.claims import ClaimsError, Lease, PartitionClaims
from assignors.claims.claiming_sql_by_dialect import Scope, _mariadb, _postgresql, _sqlite
from assignors.claims.claims_table_columns import claims_table

POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]  # half typed
MARIADB = mysql.dialect(is_mariadb=True)
MARIADB.insert_returning = True
SQLITE = sqlite.dialect()


@pytest.fixture
def scope() -> Scope:
    """The parameters of some owner."""
    return Scope(table=claims_table("claims"), cluster="c", owner="o", lease=Lease())


def test_servers_claim_in_one_statement_and_skip_what_is_locked(scope: Scope) -> None:
    """Lock, write and answer: no process can be stopped between them."""
    in_postgresql = str(_postgresql(scope)(3).compile(dialect=POSTGRESQL))
    in_mariadb = str(_mariadb(scope)(3).compile(dialect=MARIADB))
    for statement in (in_postgresql, in_mariadb):
        assert "FOR UPDATE SKIP LOCKED" in statement
        assert "ORDER BY candidate.due_at" in statement
        assert "RETURNING" in statement
    assert "FORCE INDEX (claims_due)" in in_mariadb
    # MySQL evaluates from left to right: an old value must be read before its column is replaced.
    assert in_mariadb.index("waited_ms = ") < in_mariadb.index("last_picked_at = ")


def test_no_time_comes_from_the_client(scope: Scope) -> None:
    """Each time is the database's function; the parameters are durations."""
    for compiled in (
        _postgresql(scope)(3).compile(dialect=POSTGRESQL),
        _sqlite(scope)(3).compile(dialect=SQLITE),
    ):
        numbers = [value for value in compiled.params.values() if isinstance(value, int)]
        assert max(numbers) == 3_600_000


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///claims.db?timeout=soon",
        "oracle://host/db",
        "nosuch://host",
        "postgresql://user:secret@host:port/db",
        "postgresql://user:pass@secret@host/db",
        "postgresql:/user:secret@host/db",
        "mysql://host/db?passwd=secret&no_such_option=1",
        "mysql://user:secret@host/db?no_such_option=1",
    ],
)
def test_an_address_without_a_meaning_is_a_sentence(address: str) -> None:
    """The error is ours, not SQLAlchemy's or a driver's, without a password; a database in memory cannot be shared."""
    with pytest.raises(ClaimsError) as raised:
        PartitionClaims(address, cluster="c")
    assert "secret" not in str(raised.value)


def test_a_server_that_is_not_there_is_away() -> None:
    """Connecting is not tried before the first question."""
    claims = PartitionClaims("postgresql://nobody:secret@127.0.0.1:1/none", cluster="c")
    with pytest.raises(ClaimsError, match="does not answer") as raised:
        claims.claim(1)
    assert "secret" not in str(raised.value)
