"""Several processes on one real Delta table, killed and stopped at any point: every record once."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_sink.lake.holes_and_doubles import Report, verify
from tests.integration.spark_sink.chaos.draws import SEEDS

pytestmark = pytest.mark.integration

WRITER = Path(__file__).with_name("fence_writer.py")
PATIENCE_S = 120
FAULTS = 10


class _Writer:
    """A process that says on its output where it stands."""

    def __init__(self, table: Path, seed: int, records: int, *, unfenced: bool) -> None:
        command = [sys.executable, str(WRITER), str(table), "--partitions", "4", "--records", str(records)]
        command += ["--seed", str(seed), *(["--unfenced"] if unfenced else [])]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, line: bytes) -> bool:
        """Read on until it says this; False where it ended before."""
        assert self.process.stdout is not None
        return any(said.strip() == line for said in iter(self.process.stdout.readline, b""))

    def go(self) -> None:
        """Let it begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            self.process.send_signal(number)


@contextmanager
def _writers(table: Path, seed: int, records: int, *, unfenced: bool) -> Iterator[list[_Writer]]:
    writers = [_Writer(table, seed + number, records, unfenced=unfenced) for number in range(3)]
    try:
        for one in writers:
            one.wait_for(b"ready")
        for one in writers:
            one.go()
        yield writers
    finally:
        for one in writers:
            one.process.kill()
            one.process.communicate()


def _torment(table: Path, seed: int, records: int, *, unfenced: bool) -> Report:
    """Kill writers, and stop them between the look and the swap until another has committed; then let all finish."""
    random_ = random.Random(seed)
    with _writers(table, seed, records, unfenced=unfenced) as writers:
        for fault in range(FAULTS):
            victim, other = random_.sample(range(len(writers)), 2)
            if not writers[victim].wait_for(b"looked"):
                continue
            if random_.random() < 0.3:
                writers[victim].signal(signal.SIGKILL)
                writers[victim].process.communicate()
                writers[victim] = _Writer(table, seed + 100 + fault, records, unfenced=unfenced)
                writers[victim].wait_for(b"ready")
                writers[victim].go()
                continue
            writers[victim].signal(signal.SIGSTOP)
            writers[other].wait_for(b"committed")
            writers[other].wait_for(b"committed")
            writers[victim].signal(signal.SIGCONT)
        said = [one.process.communicate(timeout=PATIENCE_S)[1].decode()[-400:] for one in writers]
        codes = [one.process.returncode for one in writers]
    assert unfenced or codes == [0, 0, 0], f"seed {seed}: {said}"
    return verify(str(table))


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_and_stopped_processes_leave_every_record_once(tmp_path: Path, seed: int) -> None:
    """Three writers hold overlapping partitions, so nearly every commit is a race."""
    report = _torment(tmp_path / "table", seed, 1000, unfenced=False)
    assert (report.rows, report.duplicates, report.missing) == (4000, 0, 0), f"seed {seed}"


def test_the_same_without_the_fence_doubles_records(tmp_path: Path) -> None:
    """So the test above sees what it is there for."""
    assert _torment(tmp_path / "table", 1, 400, unfenced=True).duplicates
