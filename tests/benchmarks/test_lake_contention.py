"""What 1 to 32 writers of one table get done, in both formats, beside the plain appends of delta-rs and pyiceberg."""

import multiprocessing
import statistics
from importlib.metadata import version
from pathlib import Path

import pytest

from spark_sink.lake.holes_and_doubles import verify
from tests.benchmarks.lake_report import save
from tests.benchmarks.lake_writers import ROWS, Case, Wrote, address, create, run

pytestmark = pytest.mark.benchmark

KINDS = ("delta", "delta-rs append", "iceberg", "pyiceberg append")
WRITERS = (1, 2, 4, 8, 16, 32)
ROUNDS, SECONDS = 3, 2.0
_PATIENCE_S = 120.0


def _measure(kind: str, root: Path, writers: int) -> dict[str, float]:
    """Let writers write for a while; each process is forked from one that has loaded the modules."""
    create(kind, root)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.benchmarks.lake_writers"])
    start, results = (context.Lock(), context.Barrier(writers)), context.Queue()
    case = Case(kind, root, SECONDS)
    processes = [context.Process(target=run, args=(case, number, start, results)) for number in range(writers)]
    for one in processes:
        one.start()
    wrote: list[Wrote] = [done for _ in processes for done in results.get(timeout=_PATIENCE_S)]
    for one in processes:
        one.join(_PATIENCE_S)
    if kind in {"delta", "iceberg"}:
        assert verify(*address(kind, root)[:1], "g", address(kind, root)[1]).ok
    landed = sum(one.in_time and not one.refused for one in wrote)
    return {
        "commits_a_second": landed / SECONDS,
        "rows_a_second": landed * ROWS / SECONDS,
        # Of all commits that began: those that end late are the ones that had to repeat.
        "at_once": sum(one.at_once for one in wrote) / len(wrote),
        "refused": sum(one.refused for one in wrote) / len(wrote),
    }


def test_writers_of_one_table_share_it(tmp_path: Path) -> None:
    """The kinds take turns within a round; each number is the median of the rounds."""
    found: dict[str, dict[int, list[dict[str, float]]]] = {kind: {number: [] for number in WRITERS} for kind in KINDS}
    for turn in range(ROUNDS):
        for writers in WRITERS:
            for kind in KINDS:
                root = tmp_path / f"{turn} {writers} {kind}".replace(" ", "-")
                root.mkdir()
                found[kind][writers].append(_measure(kind, root, writers))
    medians = {
        kind: {
            str(writers): {name: round(statistics.median(one[name] for one in rounds), 3) for name in rounds[0]}
            for writers, rounds in by_writers.items()
        }
        for kind, by_writers in found.items()
    }
    save(
        "writers of one table",
        {
            "versions": {name: version(name) for name in ("deltalake", "pyiceberg")},
            "rounds": ROUNDS,
            "seconds": SECONDS,
            "rows_of_a_commit": ROWS,
            "medians": medians,
        },
    )
