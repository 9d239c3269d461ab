"""Hive's catalog: its lock, its threads, and a metastore that is away."""

import logging
import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hive_metastore.ttypes import ShowLocksRequest, UnlockRequest

from spark_sink import positions
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.sink_checks import planned_checks
from spark_sink.checks import Finding, State, run
from spark_sink.cli import main
from spark_sink.errors import TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg import hive_metastore as catalogs
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.hive_fixture import Metastore, hive_on_postgresql
from tests.table_kinds import SCHEMA, rows_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WRITERS, BATCHES, ROWS = 8, 5, 10
COLUMNS = arrow_schema(headers=False)
ALTER = "alter_table_with_environment_context"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """One metastore for all tests."""
    with hive_on_postgresql(tmp_path_factory.mktemp("hive")) as one:
        yield one


@pytest.fixture
def metastore(running: Metastore) -> Iterator[Metastore]:
    """A metastore that runs at the start and at the end of a test."""
    yield running
    if running.pid is None:
        running.start()


@pytest.fixture
def address() -> str:
    """A new table."""
    return f"iceberg://lake.raw.t{uuid.uuid4().hex[:8]}"


def _batch(table: IcebergTable, partition: int, begin: int, end: int) -> Batch:
    landing = table.landing(SCHEMA)
    landing.write(rows_of(TopicPartition("t", partition), range(begin, end)))
    return Batch(offset=Offset.of([Range("t", partition, begin, end)]), files=landing.close(), schema=SCHEMA)


def _write(storage: Mapping[str, str], address: str, partition: int, begin: int, end: int) -> None:
    table = IcebergTable(address, "g", storage)
    commit(table, _batch(table, partition, begin, end))


def _counts(metastore: Metastore, address: str) -> tuple[int, int, int]:
    found = verify(address, "g", metastore.storage)
    return found.rows, found.duplicates, found.missing


def test_threads_that_share_a_catalog_lose_and_double_nothing(metastore: Metastore, address: str) -> None:
    """Pyiceberg's catalog has one connection for all threads; two writers of each partition write the same batches."""

    def write(number: int) -> None:
        for batch in range(BATCHES):
            _write(metastore.storage, address, number // 2, batch * ROWS, (batch + 1) * ROWS)

    IcebergTable(address, "g", metastore.storage).create(SCHEMA)
    with ThreadPoolExecutor(WRITERS) as threads:
        for _ in threads.map(write, range(WRITERS)):
            pass
    assert _counts(metastore, address) == (WRITERS // 2 * BATCHES * ROWS, 0, 0)


def test_a_writer_that_lost_its_lock_overwrites_no_other_commit(
    metastore: Metastore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped between its look and its alter until the metastore gave the lock to another writer."""
    _write(metastore.storage, address, 0, 0, 3)
    reached, resume = threading.Event(), threading.Event()
    altering = getattr(catalogs.FencedClient, ALTER)

    def alter(*given: Any, **named: Any) -> None:
        if threading.current_thread() is stopped and not reached.is_set():
            reached.set()
            assert resume.wait(120)
        altering(*given, **named)

    monkeypatch.setattr(catalogs.FencedClient, ALTER, alter)
    stopped = threading.Thread(target=_write, args=(metastore.storage, address, 1, 0, 3))
    stopped.start()
    assert reached.wait(60)
    _write(metastore.storage, address, 2, 0, 3)  # waits until the metastore has removed the lock
    resume.set()
    stopped.join(60)
    assert positions(address, "g", metastore.storage) == {("t", one): 3 for one in range(3)}
    assert _counts(metastore, address) == (9, 0, 0)


def test_a_commit_without_the_lock_is_still_compared_and_swapped(
    metastore: Metastore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator may remove the lock of a slow writer; the commit that another writer makes then must stay."""
    _write(metastore.storage, address, 0, 0, 3)
    altering = getattr(catalogs.FencedClient, ALTER)
    met: list[int] = []

    def alter(client: Any, **named: Any) -> None:
        if not met:
            met.append(1)
            for lock in client.show_locks(ShowLocksRequest(dbname=named["dbname"], tablename=named["tbl_name"])).locks:
                client.unlock(UnlockRequest(lockid=lock.lockid))
            _write(metastore.storage, address, 1, 0, 3)
        altering(client, **named)

    monkeypatch.setattr(catalogs.FencedClient, ALTER, alter)
    _write(metastore.storage, address, 0, 3, 6)
    assert positions(address, "g", metastore.storage) == {("t", 0): 6, ("t", 1): 3}
    assert _counts(metastore, address) == (9, 0, 0)


def _die_under_the_lock(storage: Mapping[str, str], address: str) -> None:
    def alter(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(catalogs.FencedClient, ALTER, alter)
    _write(storage, address, 1, 0, 3)


def test_the_lock_of_a_writer_that_was_killed_is_waited_for(
    metastore: Metastore, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the lock that is waited for; the metastore removes it, and the next writer continues."""
    _write(metastore.storage, address, 0, 0, 3)
    monkeypatch.setattr(catalogs, "NOTICE_S", 0.1)
    process = multiprocessing.get_context("spawn").Process(
        target=_die_under_the_lock, args=(dict(metastore.storage), address)
    )
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    with caplog.at_level(logging.WARNING, "azimuth.sink"):
        _write(metastore.storage, address, 1, 0, 3)
    assert "another writer has held the metastore's lock on raw." in caplog.text
    assert _counts(metastore, address) == (6, 0, 0)


def test_a_lock_that_stays_is_an_error_that_names_it(
    metastore: Metastore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent does not wait forever without a message, and nothing of the batch is committed."""
    _write(metastore.storage, address, 0, 0, 3)
    catalog: Any = open_catalog("lake", metastore.storage)
    name = address.rpartition(".")[2]
    monkeypatch.setattr(catalogs, "LOCK_S", 0.2)
    with catalog._client as client:
        lock = client.lock(catalog._create_lock_request("raw", name))
        with pytest.raises(TableError, match="another writer has held the metastore's lock"):
            _write(metastore.storage, address, 0, 3, 6)
        client.unlock(UnlockRequest(lockid=lock.lockid))
    _write(metastore.storage, address, 0, 3, 6)
    assert _counts(metastore, address) == (6, 0, 0)


def test_a_metastore_that_is_away_is_one_sentence_and_writers_continue_when_it_is_back(
    metastore: Metastore, address: str
) -> None:
    """At the start and between two batches."""
    table = IcebergTable(address, "g", metastore.storage)
    metastore.stop()
    with pytest.raises(TableError, match=r"cannot be read: TTransportException: Could not connect"):
        table.refresh()
    metastore.start()
    commit(table, _batch(table, 0, 0, 3))
    batch = _batch(table, 0, 3, 6)
    metastore.stop()
    with pytest.raises(TableError, match=r"cannot be read: TTransportException: Could not connect") as away:
        commit(table, batch)
    assert "\n" not in str(away.value)
    metastore.start()
    commit(table, batch)
    assert _counts(metastore, address) == (6, 0, 0)


def test_a_metastore_that_dies_after_a_commit_was_asked_for_doubles_nothing(
    metastore: Metastore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is lost, the commit is not; the writer looks again when the metastore is back."""
    _write(metastore.storage, address, 0, 0, 3)
    altering = getattr(catalogs.FencedClient, ALTER)
    died: list[int] = []

    def alter(*given: Any, **named: Any) -> None:
        altering(*given, **named)
        if not died:
            died.append(1)
            metastore.stop()
            raise OSError("the connection broke before the answer came")

    monkeypatch.setattr(catalogs.FencedClient, ALTER, alter)
    table = IcebergTable(address, "g", metastore.storage)
    batch = _batch(table, 0, 3, 6)
    with pytest.raises(TableError):
        commit(table, batch)
    metastore.start()
    commit(table, batch)
    assert _counts(metastore, address) == (6, 0, 0)


def test_many_positions_fit_into_the_table(metastore: Metastore, address: str) -> None:
    """A metastore limits the length of a parameter, and pyiceberg copies each property of the table into one."""
    table = IcebergTable(address, "g", metastore.storage)
    landing = table.landing(SCHEMA)
    landing.write(rows_of(TopicPartition("t", 0), range(3)))
    ranges = [Range(f"{uuid.uuid4()}", one, one * 7919, one * 7919) for one in range(5_000)]
    offset = Offset.of([Range("t", 0, 0, 3), *ranges])
    commit(table, Batch(offset=offset, files=landing.close(), schema=SCHEMA))
    _write(metastore.storage, address, 0, 3, 6)
    stored = table.stored
    assert stored is not None
    assert max(map(len, stored.table.metadata.properties.values())) > 32_672
    assert positions(address, "g", metastore.storage)[TopicPartition("t", 0)] == 6


@pytest.fixture
def azimuth(metastore: Metastore, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs a command with the options of the catalog."""

    def command(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *(f"--storage={name}={value}" for name, value in metastore.storage.items())])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return command


def test_commands_read_and_rewind_a_table(
    metastore: Metastore, address: str, azimuth: Callable[..., tuple[int, str]]
) -> None:
    """`verify`, also by a name with a placeholder, and `rewind` after a rollback."""
    _write(metastore.storage, address, 0, 0, 3)
    table = IcebergTable(address, "g", metastore.storage)
    assert table.refresh() is not None
    stored = table.stored
    assert stored is not None
    first = stored.table.metadata.current_snapshot_id
    assert first is not None
    _write(metastore.storage, address, 0, 3, 6)
    assert azimuth("verify", address)[0] == 0
    pattern = f"{address[:-1]}{{topic}}"
    assert "6 rows in 1 partitions" in azimuth("verify", pattern)[1]
    stored.table.refresh().manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(TableError, match="rolled back"):
        IcebergTable(address, "g", metastore.storage).refresh()
    assert azimuth("rewind", address, "--apply")[0] == 0
    assert positions(address, "g", metastore.storage) == {("t", 0): 3}
    _write(metastore.storage, address, 0, 3, 6)
    assert _counts(metastore, address) == (6, 0, 0)


def test_a_metastore_that_is_away_is_one_sentence_of_a_command(
    metastore: Metastore, address: str, azimuth: Callable[..., tuple[int, str]]
) -> None:
    """Exit code 2, without a traceback; `azimuth sink --check` finds it before the start."""
    IcebergTable(address, "g", metastore.storage).create(COLUMNS)
    found = _check(metastore, address)
    assert (found.state, found.text) == (State.OK, f"{address}: exists")
    metastore.stop()
    code, said = azimuth("verify", address)
    # The command asks for 10 s, so that a catalog may restart, and says after 5 s what it waits for.
    (sentence,) = (one for one in said.splitlines() if not one.startswith("azimuth: looking at"))
    assert code == 2
    assert "Could not connect to any of" in sentence
    found = _check(metastore, address)
    assert found.state is State.FAULT
    assert "Could not connect to any of" in found.text


def _check(metastore: Metastore, address: str) -> Finding:
    """Return what `azimuth sink --check` finds of the table."""
    settings = AgentSettings.model_validate(
        {
            "bootstrap_servers": "127.0.0.1:1",
            "group": "g",
            "table": address.removeprefix("iceberg://"),
            "table_format": "iceberg",
            "catalog": {name.removeprefix("catalog."): value for name, value in metastore.storage.items()},
            "checkpoint": str(metastore.root / "checkpoint"),
            "subscribe": "t",
            "agent": "a",
        }
    )
    (found,) = run([one for one in planned_checks(settings) if one.subject == "table"], limit_s=90)
    return found
