"""Writers of an Iceberg table that are killed at random instants neither lose nor double a row."""

import multiprocessing
import random
import time
from collections import Counter
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import duckdb
import pytest

from spark_sink import positions
from spark_sink.lake.holes_and_doubles import verify
from tests.iceberg_writer import PARTITIONS, last_batch, offset_log, write_batches
from tests.table_kinds import ADDRESS, catalog, warehouse
from tests.waiting import wait_until

AGENTS = ("one", "two")
KILLS = 14
SEED = 7
LONGEST_BATCH_S = 0.3


def _batches(root: Path, agent: str) -> int:
    log = offset_log(root, agent)
    return sum(1 for one in log.iterdir() if one.name.isdecimal()) if log.exists() else 0


def _has_begun(root: Path, agent: str, process: BaseProcess, number: int) -> bool:
    assert process.exitcode is None, f"agent {agent} ended by itself, with {process.exitcode}"
    return _batches(root, agent) >= number


def _ends(root: Path) -> dict[int, int]:
    """Return the end of each partition in the batch of either agent that reached furthest."""
    last = [last_batch(root, agent) for agent in AGENTS]
    return {one: max(ends[one] for ends in last) for one in range(PARTITIONS)}


@pytest.mark.slow
def test_every_offset_is_in_the_table_once_however_often_its_writers_are_killed(tmp_path: Path) -> None:
    """Two agents write the same partitions; each kill (SIGKILL) hits one of them somewhere in a batch."""
    processes = multiprocessing.get_context("forkserver")  # a writer starts at once, with its modules loaded
    processes.set_forkserver_preload(["tests.iceberg_writer", "pyiceberg.catalog.sql", "pyiceberg.table"])
    draw = random.Random(SEED)

    def start(agent: str) -> BaseProcess:
        process = processes.Process(target=write_batches, args=(tmp_path, agent), daemon=True)  # ends with the test
        process.start()
        return process

    running = {agent: start(agent) for agent in AGENTS}
    for number in range(KILLS):
        agent = AGENTS[number % len(AGENTS)]
        wanted = _batches(tmp_path, agent) + draw.randint(1, 2)
        begun = partial(_has_begun, tmp_path, agent, running[agent], wanted)
        wait_until(begun, 600, f"batch {wanted} of agent {agent}")
        time.sleep(draw.uniform(0, LONGEST_BATCH_S))  # the instant of the fault, not a wait for a condition
        running[agent].kill()
        running[agent].join()
        running[agent] = start(agent)
    (tmp_path / "stop").touch()
    for process in running.values():
        process.join(600)
        assert process.exitcode == 0

    found = positions(ADDRESS, "g", warehouse(tmp_path))
    wanted_rows = Counter((key.partition, at) for key, end in found.items() for at in range(end))
    scan = catalog(tmp_path).load_table(("raw", "events")).scan()
    files = [task.file.file_path.removeprefix("file://") for task in scan.plan_files()]
    rows = duckdb.execute('select "partition", "offset" from read_parquet($1)', [files]).fetchall()
    assert {key.partition: end for key, end in found.items()} == _ends(tmp_path)
    assert Counter(rows) == wanted_rows
    assert scan.to_arrow().num_rows == wanted_rows.total()
    assert verify(ADDRESS, storage_options=warehouse(tmp_path)).ok
