"""The cost of a commit to an Iceberg table as it ages, with many positions, beside pyiceberg's own appends."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_contract import Change
from spark_sink.ranges.batch_offset import TopicPartition
from tests.benchmarks.lake_report import save
from tests.table_kinds import ADDRESS, SCHEMA, iceberg_file, peer, rows_of, warehouse

pytestmark = pytest.mark.benchmark

POSITIONS, COMMITS, PEER_COMMITS, WINDOW = 20_000, 1_000, 120, 50
KEY = TopicPartition("t", 0)


@dataclass(frozen=True, slots=True)
class Taken:
    """The time of one commit, milliseconds.

    Attributes:
        cpu_ms: of this process, with the thread that writes manifests.
        wall_ms: until the commit was there.
    """

    cpu_ms: float
    wall_ms: float


def _timed(work: Callable[[], object]) -> Taken:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Taken((time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000)


def _ours(root: Path) -> list[Taken]:
    table = IcebergTable(ADDRESS, "g", warehouse(root))
    table.create(SCHEMA)
    known = {TopicPartition(f"topic-{number // 100}", number % 100): 10**6 + number * 37 for number in range(POSITIONS)}
    snapshot = table.refresh()
    assert snapshot is not None
    table.swap(snapshot, Change(files=[], positions=known, beginnings=known, schema=SCHEMA))

    def commit(number: int) -> None:
        snapshot = table.refresh()
        assert snapshot is not None
        change = Change(files=files[number], positions={KEY: number + 1}, beginnings={}, schema=SCHEMA)
        table.swap(snapshot, change)
        table.compact(100)

    files = {number: [iceberg_file(root, KEY, [number])] for number in range(COMMITS)}
    return [_timed(partial(commit, number)) for number in range(COMMITS)]


def _plain(root: Path) -> list[Taken]:
    database = root / "plain.db"
    catalog = load_catalog("plain", type="sql", uri=f"sqlite:///{database}", warehouse=f"file://{root}/plain")
    catalog.create_namespace("raw")
    table = catalog.create_table("raw.events", SCHEMA)
    rows = pa.Table.from_batches([rows_of(KEY, [0])])
    return [_timed(lambda: table.append(rows)) for _ in range(PEER_COMMITS)]


def test_a_commit_costs_the_same_as_the_table_ages(tmp_path: Path) -> None:
    """Ours has 20,000 positions and beginnings in every version; the peer keeps none, and also writes its file."""
    taken = {"iceberg-exactly-once": _ours(tmp_path), "pyiceberg append": _plain(tmp_path)}
    result = {
        "pyiceberg": version("pyiceberg"),
        "positions": POSITIONS,
        "metadata_bytes": Path(peer(tmp_path).metadata_location.removeprefix("file://")).stat().st_size,
        "cpu_ms": {name: _figures([one.cpu_ms for one in times]) for name, times in taken.items()},
        "wall_ms": {name: _figures([one.wall_ms for one in times]) for name, times in taken.items()},
    }
    save("commit to an aged Iceberg table", result)


def _figures(times: Sequence[float]) -> dict[str, float]:
    first, last = statistics.median(times[:WINDOW]), statistics.median(times[-WINDOW:])
    return {
        "commits": len(times),
        f"median of the first {WINDOW}": round(first, 1),
        f"median of the last {WINDOW}": round(last, 1),
        "growth": round(last / first, 2),
        "95%": round(statistics.quantiles(times, n=20)[-1], 1),
        "longest": round(max(times), 1),
    }
