"""Writers that create a catalog, a namespace and a table at the same time all end with the same table."""

import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from sqlalchemy.exc import IntegrityError, OperationalError

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import catalogs, iceberg_table
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_storage import Storage
from tests.table_kinds import ADDRESS, SCHEMA, peer, warehouse

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
    monkeypatch.setattr(iceberg_table, "open_catalog", _uncached)
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
