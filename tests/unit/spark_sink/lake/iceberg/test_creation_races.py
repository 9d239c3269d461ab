"""Writers that create a catalog, a namespace and a table at the same time all end with the same table."""

import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.table import Table as Peer
from sqlalchemy.exc import IntegrityError, OperationalError

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import catalogs, iceberg_table, table_creation
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_addresses import Storage
from tests.table_kinds import ADDRESS, SCHEMA, catalog, peer, warehouse

WRITERS, ROUNDS = 4, 5
CREATE = """
import sys, time
from pathlib import Path
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from tests.table_kinds import ADDRESS, SCHEMA, warehouse
name, writers, rounds, root = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
for number in range(rounds):
    place = root / str(number)
    place.mkdir(exist_ok=True)
    (place / f"ready-{name}").touch()
    deadline = time.monotonic() + 120
    while len(list(place.glob("ready-*"))) < writers and time.monotonic() < deadline:
        time.sleep(0.001)
    table = IcebergTable(ADDRESS, "g", warehouse(place))
    table.create(SCHEMA)
    print(table.refresh().version, table._table.metadata.table_uuid)
"""


def _uncached(name: str, storage: Storage) -> Catalog:
    """Open a catalog as a process of its own does."""
    given = {key.removeprefix("catalog."): value for key, value in storage.items()}
    return catalogs._opened.__wrapped__(name, tuple(given.items()))


def test_threads_that_create_the_same_table_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opens the catalog for itself, so the database, the namespace and the table are created at once."""
    for module in (iceberg_table, table_creation):
        monkeypatch.setattr(module, "open_catalog", _uncached)
    for number in range(ROUNDS):
        root, barrier = tmp_path / str(number), threading.Barrier(WRITERS)

        def create(_: int, root: Path = root, barrier: threading.Barrier = barrier) -> uuid.UUID:
            barrier.wait()
            table = IcebergTable(ADDRESS, "g", warehouse(root))
            table.create(SCHEMA)
            assert table.refresh() is not None
            return peer(root).metadata.table_uuid

        with ThreadPoolExecutor(WRITERS) as pool:
            assert len(set(pool.map(create, range(WRITERS)))) == 1


@pytest.mark.slow
def test_processes_that_create_the_same_table_at_once(tmp_path: Path) -> None:
    """Agents on one machine start together on an empty folder."""
    commands = [
        [sys.executable, "-c", CREATE, str(n), str(WRITERS), str(ROUNDS), str(tmp_path)] for n in range(WRITERS)
    ]
    root = Path(__file__).parents[5]
    running = [
        subprocess.Popen(one, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for one in commands
    ]
    done = [one.communicate(timeout=300) for one in running]
    assert not [errors[-2000:] for process, (_, errors) in zip(running, done, strict=True) if process.returncode]
    assert len({found for found, _ in done}) == 1


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("create_namespace", IntegrityError("insert", {}, Exception("UNIQUE constraint failed"))),
        ("create_namespace", OperationalError("insert", {}, Exception("database is locked"))),
        ("create_table", OperationalError("insert", {}, Exception("database is locked"))),
    ],
    ids=["namespace", "locked namespace", "locked table"],
)
def test_a_lost_race_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, error: Exception
) -> None:
    """The catalog reports the race of another writer as an error of its database."""
    kind = type(catalogs.open_catalog("lake", warehouse(tmp_path)))
    real, errors = getattr(kind, method), [error]

    def fail_once(self: Catalog, *given: object, **named: object) -> object:
        if errors:
            raise errors.pop()
        return real(self, *given, **named)

    monkeypatch.setattr(kind, method, fail_once)
    IcebergTable(ADDRESS, "g", warehouse(tmp_path)).create(SCHEMA)
    assert peer(tmp_path).metadata.current_snapshot_id is None


def test_an_error_that_is_no_race_is_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retry does not help a user without rights."""
    kind = type(catalogs.open_catalog("lake", warehouse(tmp_path)))
    calls = []

    def refuse(*_: object, **__: object) -> None:
        calls.append(1)
        raise OperationalError("insert", {}, Exception("permission denied"))

    monkeypatch.setattr(kind, "create_namespace", refuse)
    with pytest.raises(TableError, match="permission denied"):
        IcebergTable(ADDRESS, "g", warehouse(tmp_path)).create(SCHEMA)
    assert len(calls) == 1


def test_a_user_who_may_only_create_tables_creates_one_in_a_namespace_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catalogs with rights refuse even to create a namespace that is there; in one that is not, the error is theirs."""
    home = catalog(tmp_path)

    def refused(*_: object, **__: object) -> None:
        raise ForbiddenError("not yours")

    monkeypatch.setattr(type(home), "create_namespace", refused)
    monkeypatch.setattr(type(home), "create_namespace_if_not_exists", refused)
    with pytest.raises(TableError, match="not yours"):
        IcebergTable(ADDRESS, "g", warehouse(tmp_path)).create(SCHEMA)
    monkeypatch.undo()
    home.create_namespace("raw")
    monkeypatch.setattr(type(home), "create_namespace", refused)
    monkeypatch.setattr(type(home), "create_namespace_if_not_exists", refused)
    IcebergTable(ADDRESS, "g", warehouse(tmp_path)).create(SCHEMA)
    assert peer(tmp_path).scan().count() == 0


def test_a_table_is_read_with_the_credentials_that_the_catalog_gave_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REST catalogs vend some that last an hour, with each answer to the question for a table."""
    table = IcebergTable(ADDRESS, "g", warehouse(tmp_path))
    table.create(SCHEMA)
    table.refresh()
    real = SqlCatalog.load_table
    vended: list[Peer] = []

    def load(home: SqlCatalog, identifier: str) -> Peer:
        found = real(home, identifier)
        found.config = {"s3.session-token": str(len(vended))}
        vended.append(found)
        return found

    monkeypatch.setattr(SqlCatalog, "load_table", load)
    for number in range(2):
        table.refresh()
        held = table._table
        assert held is not None
        assert (held.io, held.config["s3.session-token"]) == (vended[-1].io, str(number))
