"""One table in each kind of catalog and storage: the same compare and swap, compaction and verification."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitStateUnknownException

from spark_sink import positions
from spark_sink.errors import ConflictError
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.iceberg.partition_terms import parse_terms
from spark_sink.lake.table_contract import Change, DataFile
from spark_sink.lake.table_settings import TableSettings
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.assignors.claims.conftest import MariaDB, PostgreSQL, running
from tests.integration.spark_sink.hive_fixture import hive_metastore, hive_on_postgresql
from tests.integration.spark_sink.rest_fixture import rest_catalog
from tests.integration.spark_sink.small_servers import BUCKET
from tests.table_kinds import SCHEMA, rows_of, warehouse

pytestmark = [pytest.mark.integration, pytest.mark.slow]

A = TopicPartition("a", 0)
DATABASES: dict[str, tuple[type[PostgreSQL] | type[MariaDB], str, str]] = {
    "PostgreSQL and a folder": (PostgreSQL, "postgresql", "postgresql+psycopg"),
    "MariaDB and a folder": (MariaDB, "mariadb", "mysql+pymysql"),
}
KEYS = {"access-key-id": "someone", "secret-access-key": "canary-9fd1", "region": "us-east-1"}


@contextmanager
def database(kind: type[PostgreSQL] | type[MariaDB], dialect: str, driver: str) -> Iterator[str]:
    """Run a database; skip the test if there is none. Yields its address for pyiceberg."""
    with running(kind) as server:
        yield f"{driver}://" + server.address.removeprefix(f"{dialect}://")


@pytest.fixture(
    params=[
        "SQLite and a folder",
        "SQLite and S3",
        "Glue and S3",
        "REST and a folder",
        "PostgreSQL and a folder",
        "MariaDB and a folder",
        "Hive on PostgreSQL and a folder",
        "Hive on Derby and a folder",
    ]
)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The options of a catalog."""
    kind = request.param
    if kind == "REST and a folder":
        with rest_catalog(tmp_path) as address:
            yield {"catalog.type": "rest", "catalog.uri": address}
        return
    if kind.startswith("Hive"):
        with (hive_metastore if "Derby" in kind else hive_on_postgresql)(tmp_path) as metastore:
            yield metastore.storage
        return
    if kind == "SQLite and a folder":
        yield warehouse(tmp_path)
        return
    if kind in DATABASES:
        with database(*DATABASES[kind]) as address:
            yield {**warehouse(tmp_path), "catalog.type": "sql", "catalog.uri": address}
        return
    address = request.getfixturevalue("endpoint")
    given = {"catalog.warehouse": f"s3://{BUCKET}", "catalog.s3.endpoint": address}
    given |= {f"catalog.s3.{name}": value for name, value in KEYS.items()}
    if kind == "Glue and S3":
        given |= {"catalog.type": "glue", "catalog.glue.endpoint": address}
        given |= {f"catalog.glue.{name}": value for name, value in KEYS.items()}
    else:
        given |= {"catalog.type": "sql", "catalog.uri": f"sqlite:///{tmp_path}/catalog.db"}
    yield given


def _landed(table: IcebergTable, begin: int, end: int) -> list[DataFile]:
    landing = table.landing(SCHEMA)
    landing.write(rows_of(A, range(begin, end)))
    return landing.close()


def _change(table: IcebergTable, begin: int, end: int) -> Change:
    first = {} if begin else {A: 0}
    files = _landed(table, begin, end)
    return Change(files=files, positions={A: end}, beginnings=first, schema=SCHEMA)


def test_a_table_is_exactly_once_in_every_catalog(storage: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers of one look, an answer that is lost after a commit, overlapping batches, expiry and compaction."""
    address = f"iceberg://lake.raw.t{uuid.uuid4().hex[:8]}"
    settings = TableSettings(terms=parse_terms("topic, bucket(2, partition)"))
    one, two = (IcebergTable(address, "g", storage, settings) for _ in range(2))
    assert one.refresh() is None
    one.create(SCHEMA)
    two.create(SCHEMA)
    stale, fresh = one.refresh(), two.refresh()
    assert stale is not None
    assert fresh is not None
    two.swap(fresh, _change(two, 0, 3))
    with pytest.raises(ConflictError):
        one.swap(stale, _change(one, 0, 3))
    batch = Batch(offset=Offset.of([Range("a", 0, 1, 6)]), files=_landed(one, 1, 6), schema=SCHEMA)
    with monkeypatch.context() as patch:
        _lose_one_answer(one, patch)
        commit(one, batch)
    commit(two, batch)  # a replay
    for number in range(6, 30):
        snapshot = one.refresh()
        assert snapshot is not None
        one.swap(snapshot, _change(one, number, number + 1))
        one.compact(8)
    report = verify(address, "g", storage)
    assert (report.rows, report.duplicates, report.missing) == (30, 0, 0)
    assert positions(address, "g", storage) == {A: 30}
    assert positions("iceberg://lake.raw.{topic}", "g", storage) == {}  # the table is not that of the topic
    stored = one.stored
    assert stored is not None
    assert len(list(stored.table.scan().plan_files())) < 20


def _lose_one_answer(table: IcebergTable, patch: pytest.MonkeyPatch) -> None:
    """Let the next commit succeed, and its answer be lost."""
    stored = table.stored
    assert stored is not None
    catalog = stored.table.catalog
    committing = catalog.commit_table
    lost: list[int] = []

    def commit_table(*given: object) -> object:
        done = committing(*given)  # type: ignore[arg-type]  # as given
        if not lost:
            lost.append(1)
            raise CommitStateUnknownException("the connection broke before the answer came")
        return done

    patch.setattr(catalog, "commit_table", commit_table)
