"""A database that keeps its connections and answers nothing stops no agent and no job for good."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from assignors.claims import ClaimsAwayError, Lease, PartitionClaims, database
from spark_sink.errors import TableError
from spark_sink.lake.iceberg import repeated_requests, sql_answers
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from tests.integration.assignors.claims.conftest import MariaDB, PostgreSQL, running
from tests.table_kinds import SCHEMA, warehouse
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]
ANSWER_S = 1.0
DRIVERS: Mapping[type, str] = {PostgreSQL: "postgresql+psycopg", MariaDB: "mysql+pymysql"}


@pytest.fixture(params=[PostgreSQL, MariaDB])
def server(request: pytest.FixtureRequest) -> Iterator[PostgreSQL | MariaDB]:
    """A database of this test's own."""
    with running(request.param) as started:
        yield started


def test_a_catalog_that_falls_silent_is_an_error(
    server: PostgreSQL | MariaDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a new connection; when it answers again, the same table continues."""
    monkeypatch.setattr(sql_answers, "ANSWER_S", ANSWER_S)
    monkeypatch.setattr(repeated_requests, "PATIENCE_S", 0.0)
    address = f"{DRIVERS[type(server)]}://" + server.address.partition("://")[2]
    storage = {**warehouse(tmp_path), "catalog.type": "sql", "catalog.uri": f"{address}?connect_timeout=2"}
    table = IcebergTable("iceberg://lake.raw.events", "g", storage)
    table.create(SCHEMA)
    assert table.refresh() is not None
    with server.stopped():
        for _ in range(3):
            begun = time.monotonic()
            with pytest.raises(TableError, match="cannot be read: OperationalError"):
                table.refresh()
            assert time.monotonic() - begun < 10
    assert table.refresh() is not None


def test_claims_fail_when_their_database_falls_silent(
    server: PostgreSQL | MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the error of a database that is away, after which a job continues."""
    monkeypatch.setattr(database, "_TIMEOUT_S", 2)
    with PartitionClaims(server.address, cluster="c", lease=Lease(lease_s=3.0, hold_s=60.0)) as claims:
        claims.register([("t", 0)])
        with server.stopped():
            for _ in range(3):
                begun = time.monotonic()
                with pytest.raises(ClaimsAwayError, match="does not answer"):
                    claims.claim(1)
                assert time.monotonic() - begun < 15
        wait_until(lambda: claims.claim(1), 30)
