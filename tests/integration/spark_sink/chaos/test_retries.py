"""What pyiceberg's default retries do to compare and swap, by two processes that write the same partitions."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_sink.lake.holes_and_doubles import verify
from tests.iceberg_writer import offset_log
from tests.integration.spark_sink.tied import launch
from tests.table_kinds import ADDRESS, warehouse
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MUTANTS = Path(__file__).with_name("mutants")
CHECKOUT = Path(__file__).parents[4]
AGENTS = ("one", "two")
BATCHES = 15
_WRITER = "import sys, pathlib; from tests.iceberg_writer import write_batches; "
# pyiceberg refuses to retry when its first snapshot has expired, so none expires here.
_WRITER += "write_batches(pathlib.Path(sys.argv[1]), sys.argv[2], compact_every=0)"


@contextmanager
def _writers(root: Path, mutant: str) -> Iterator[Callable[[], str]]:
    """Run both writers, which end after a batch when the block ends; yield what they have printed."""
    path = os.pathsep.join([str(MUTANTS), str(CHECKOUT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "AZIMUTH_CHAOS_MUTANT": mutant}
    log = root / "log"
    running = [launch([sys.executable, "-c", _WRITER, str(root), agent], log, environment) for agent in AGENTS]
    try:
        yield lambda: log.read_text()[-2000:]
        (root / "stop").touch()
        for one in running:
            one.wait(120)
    finally:
        for one in running:
            one.kill()
            one.wait()


def _batches(root: Path) -> int:
    """Return the batches of the writer that has begun fewer."""
    return min(
        sum(1 for _ in log.glob("[0-9]*")) if log.exists() else 0 for log in (offset_log(root, a) for a in AGENTS)
    )


def _doubled(root: Path) -> int:
    """Return the doubled rows of the table."""
    return verify(ADDRESS, "g", warehouse(root)).duplicates


def test_default_retries_double_rows(tmp_path: Path) -> None:
    """A retry asserts the newest snapshot, so it adds a batch that the other writer has committed meanwhile."""
    with _writers(tmp_path, "retries") as printed:
        wait_until(lambda: _batches(tmp_path) > 1 and _doubled(tmp_path), 180, lambda: f"doubled rows: {printed()}")


def test_the_same_writers_without_retries_double_nothing(tmp_path: Path) -> None:
    """So it is the retries that the test above finds."""
    with _writers(tmp_path, "") as printed:
        wait_until(lambda: _batches(tmp_path) >= BATCHES, 180, lambda: f"{BATCHES} batches: {printed()}")
    assert _doubled(tmp_path) == 0, printed()
