"""`azimuth demo` from outside: it keeps its promises, and leaves no process behind."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

pytestmark = pytest.mark.acceptance


def _command(directory: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "spark_sink", "demo", "--dir", str(directory), *more]


def _processes_of(directory: Path) -> list[str]:
    found = [" ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])]
    return [command for command in found if str(directory) in command]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["reader"])
def test_every_flight_is_in_the_table_once_though_a_part_of_an_agent_is_killed(tmp_path: Path, part: str) -> None:
    """A tenth of the data, and all steps: the death of a part has the same result as the death of the whole agent."""
    done = subprocess.run(
        _command(tmp_path, "--flights", "34000", "--kill", part), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["rows"], report["duplicates"], report["missing"], report["values_differ"]) == (34_000, 0, 0, 0)
    assert report["partitions_moved_on_kill"] == report["partitions_owned_by_killed"] > 0
    assert report["cross_zone_share"]["az_aware"] == 0.0
    assert report["cross_zone_share"]["default"] == pytest.approx(2 / 3, abs=0.05)
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert _processes_of(tmp_path) == []


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_a_directory_that_works_again(tmp_path: Path) -> None:
    """The start of the agents is the worst time, because brokers, drivers and JVMs are running."""
    # A shell that runs the tests in the background makes them and their children ignore SIGINT.
    heeding = ["env", "--default-signal=INT", *_command(tmp_path)]
    process = subprocess.Popen(heeding, stderr=subprocess.PIPE, text=True)
    wait_until((tmp_path / "logs" / "agent-2.log").exists, 120)
    second = subprocess.run(_command(tmp_path), capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "another demo runs in" in second.stderr
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode not in {0, None}
    wait_until(lambda: _processes_of(tmp_path) == [], 10)


def test_an_unknown_option_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    """Usage errors are reported before any process starts."""
    done = subprocess.run(_command(tmp_path / "new", "--colour"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such option" in done.stderr
    assert not (tmp_path / "new").exists()
