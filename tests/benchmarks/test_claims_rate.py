"""Claims per second: locking in one statement, in two steps, and optimistic, compared."""

import os
import signal
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.scaling_report import save
from tests.integration.assignors.claims.conftest import WAYS, Way, databases
from tests.integration.assignors.claims.stress import Scene
from tests.integration.spark_sink.fleet.fleet_process import wait_until

pytestmark = pytest.mark.benchmark

__all__ = ["databases"]  # a fixture

SECONDS = float(os.environ.get("AZIMUTH_CLAIMS_RATE_SECONDS", "5"))
ROUNDS = int(os.environ.get("AZIMUTH_CLAIMS_ROUNDS", "2"))
PARTITIONS = 200


def measure(name: str, folder: Path, processes: int, most: int) -> dict[str, float]:
    """Claims per second of some processes that do nothing else, and the time of one call."""
    way = Way(*WAYS[name])
    folder.mkdir(parents=True)
    scene = Scene(address=way.server.address, form=way.form, table=way.table, folder=folder, processes=processes)
    with scene.claims() as watcher:
        watcher.register([("t", n) for n in range(PARTITIONS)])
    jobs = [scene.start(n, mode="rate", most=most, seconds=SECONDS, lease_s=30.0) for n in range(processes)]
    try:
        wait_until(
            lambda: all("ready" in {line["what"] for line in log} for log in logs(scene, processes)), 120, "ready"
        )
        for job in jobs:
            job.send_signal(signal.SIGUSR1)
        codes = {job.wait(SECONDS + 120) for job in jobs}
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    assert codes == {0}, scene.complaints()
    rates = [line for log in scene.lines() for line in log if line["what"] == "rate"]
    return {
        "claims_a_second": round(sum(line["claims"] for line in rates) / SECONDS, 1),
        "calls_a_second": round(sum(line["calls"] for line in rates) / SECONDS, 1),
        "claim_ms": round(statistics.median(line["claim_ms"] for line in rates), 2),
    }


def logs(scene: Scene, processes: int) -> list[list[dict[str, Any]]]:
    """Return the log of each process; empty for a process that has not started."""
    found = scene.lines()
    return [*found, *([[]] * (processes - len(found)))]


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


@pytest.mark.parametrize(("processes", "most"), [(8, 1), (8, 8)])
def test_rate(processes: int, most: int, tmp_path: Path) -> None:
    """One call claims and another disowns, each in a separate commit; the forms alternate."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for turn in range(ROUNDS):
        for name in WAYS:
            runs[name].append(measure(name, tmp_path / f"{turn}" / name, processes, most))
    found: dict[str, Any] = {name: medians(many) for name, many in runs.items()}
    for kind in ("sqlite", "postgresql", "mariadb"):
        locking, optimistic = found[kind]["claims_a_second"], found[f"{kind}-optimistic"]["claims_a_second"]
        found[kind]["times_optimistic"] = round(locking / optimistic, 2) if optimistic else None
    save(
        f"claims_rate_{processes}x{most}",
        {
            "what": f"{processes} processes, {most} partitions a call of {PARTITIONS}, {SECONDS:g} s, {ROUNDS} rounds, "
            "medians; each claim is disowned at once, by a write of its own",
            "bars": {"postgresql claims_a_second": 500},
            "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **found,
        },
    )
