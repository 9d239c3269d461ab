"""Processes that claim, faults by signals, and what must never be: two holders of an epoch, a zombie's commit."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assignors.claims import ClaimsAwayError, Form, PartitionClaims, Standing

PROGRAM = Path(__file__).with_name("claims_process.py")
LOOK_S = 0.1
MOST_OUT = 2

Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is run.

    Attributes:
        address: of the database.
        form: of claiming.
        table: name.
        folder: for the processes' logs.
        processes: how many.
        partitions: how many.
        lease_s: of each claim.
    """

    address: str
    form: Form
    table: str
    folder: Path
    processes: int = 8
    partitions: int = 200
    lease_s: float = 2.0

    def claims(self) -> PartitionClaims:
        """The claims object of the watcher."""
        return PartitionClaims(self.address, cluster="c", table=self.table, form=self.form)

    def start(self, number: int, **settings: Any) -> subprocess.Popen[bytes]:
        """Start a job."""
        given = {
            "address": self.address,
            "cluster": "c",
            "table": self.table,
            "form": self.form.value,
            "lease_s": self.lease_s,
            "owner": f"job-{number}",
            "log": str(self.folder / f"job-{number}.log"),
            "mode": "work",
            # More than a fair share each, so that the others can hold what a dead one leaves.
            "most": 3 * self.partitions // (2 * self.processes),
            "seconds": 0,
            **settings,
        }
        with (self.folder / f"job-{number}.err").open("wb") as errors:
            return subprocess.Popen([sys.executable, str(PROGRAM), json.dumps(given)], stderr=errors)

    def lines(self) -> list[list[dict[str, Any]]]:
        """What the processes wrote down; the last line of a killed one may be cut."""
        found = []
        for log in sorted(self.folder.glob("job-*.log")):
            texts = log.read_text().split("\n")[:-1]
            found.append([json.loads(text) for text in texts])
        return found

    def complaints(self) -> str:
        """What went wrong in the processes."""
        return "\n".join(error.read_text()[-1000:] for error in self.folder.glob("job-*.err"))


@dataclass(slots=True)
class Watch:
    """What the table shows while it runs, on the database's clock.

    Attributes:
        holders: who held a partition under an epoch; more than one is a fault.
        unclaimed_s: the longest time that a partition was free.
        wait_s: the longest time since a partition was claimed.
        looks: how often it was looked at.
    """

    holders: dict[tuple[Key, int], set[str]] = field(default_factory=dict)
    unclaimed_s: float = 0.0
    wait_s: float = 0.0
    looks: int = 0

    def look(self, standings: list[Standing]) -> None:
        """Take one look's standings."""
        self.looks += 1
        for one in standings:
            if one.held and one.owner:
                self.holders.setdefault(((one.topic, one.partition), one.epoch), set()).add(one.owner)
            self.unclaimed_s = max(self.unclaimed_s, one.free_s)
            self.wait_s = max(self.wait_s, one.picked_s or 0.0)


def run(scene: Scene, seconds: float, seed: int, fault_s: float = 1.5) -> dict[str, Any]:
    """Run jobs with faults and check the answers they received.

    Args:
        scene: what.
        seconds: how long, from when every partition was claimed once.
        seed: of the faults.
        fault_s: between two faults.
    """
    chance = random.Random(seed)
    watcher = scene.claims()
    watcher.register([("t", n) for n in range(scene.partitions)])
    jobs = {n: scene.start(n) for n in range(scene.processes)}
    stopped: dict[int, float] = {}
    watch, kills, stops = Watch(), 0, 0
    try:
        _wait_for_all(scene, watcher, jobs)
        end = time.monotonic() + seconds
        next_fault = time.monotonic() + fault_s
        while (now := time.monotonic()) < end:
            for number in [n for n, until in stopped.items() if now > until]:
                jobs[number].send_signal(signal.SIGCONT)
                del stopped[number]
            starting = {n for n in jobs if not _works(scene, n)}
            # What a dead one leaves can be held by those that are up: at least six of eight, with half as much again.
            if now > next_fault and len(starting | set(stopped)) < MOST_OUT:
                next_fault = now + fault_s
                number = chance.choice(sorted(set(jobs) - set(stopped) - starting))
                if chance.random() < 0.5:
                    _kill(jobs.pop(number))
                    jobs[scene.processes + kills] = scene.start(scene.processes + kills)
                    kills += 1
                else:
                    jobs[number].send_signal(signal.SIGSTOP)
                    stopped[number] = now + scene.lease_s * chance.uniform(1.2, 2)
                    stops += 1
            try:
                watch.look(watcher.standings())
            except ClaimsAwayError:  # SQLite, while the process that locks the file is stopped
                continue
            time.sleep(LOOK_S)
        for number in stopped:
            jobs[number].send_signal(signal.SIGCONT)
        codes = _end(jobs)
    finally:
        for job in jobs.values():
            _kill(job)
        free = [one for one in watcher.standings() if not one.held]
        watcher.close()
    return {
        "seconds": seconds,
        "kills": kills,
        "stops": stops,
        "exit_codes": codes,
        "unclaimed_most_s": round(watch.unclaimed_s, 3),
        "oldest_claim_most_s": round(watch.wait_s, 3),
        "looks": watch.looks,
        "epochs_seen_with_two_holders": sum(len(owners) > 1 for owners in watch.holders.values()),
        "free_at_the_end": len(free),
        **judge(scene.lines()),
    }


def judge(logs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Compare the answers that the processes received with the expected ones.

    Commits rise with the epoch, so a commit that was accepted after a later claim is higher than what that claim saw,
    though it belongs to an epoch below: so a zombie's is found whatever the clocks say.
    """
    lines = [line for log in logs for line in log]
    claimed = [line for line in lines if line["what"] == "claim"]
    epochs = [(_key(line), line["epoch"]) for line in claimed]
    accepted = [line for line in lines if line["what"] == "commit"]
    refused = [line for line in lines if line["what"] == "refused"]
    waits = sorted(line["waited_s"] for line in claimed if line["waited_s"] is not None)
    return {
        "claims": len(claimed),
        "commits": len(accepted),
        "two_holders_of_one_epoch": len(epochs) - len(set(epochs)),
        "zombie_commits_refused": len(refused),
        "late_commits_tried": sum(line["late"] for line in accepted + refused),
        "late_commits_accepted": sum(line["late"] for line in accepted),
        "commits_after_a_later_claim": _overtaken(claimed, accepted),
        "database_away": sum(line["what"] == "away" for line in lines),
        "wait_between_claims_s": {
            "median": round(waits[len(waits) // 2], 3) if waits else None,
            "most": round(waits[-1], 3) if waits else None,
        },
    }


def _overtaken(claimed: list[dict[str, Any]], accepted: list[dict[str, Any]]) -> int:
    commits: dict[Key, list[tuple[int, int]]] = {}
    for line in accepted:
        commits.setdefault(_key(line), []).append((line["epoch"], line["value"]))
    seen: dict[Key, list[tuple[int, int]]] = {}
    for line in claimed:
        seen.setdefault(_key(line), []).append((line["epoch"], -1 if line["seen"] is None else line["seen"]))
    found = 0
    for key, values in commits.items():
        for epoch, value in values:
            found += any(later > epoch and value > at for later, at in seen.get(key, ()))
    return found


def _key(line: Mapping[str, Any]) -> Key:
    topic, partition = line["key"]
    return topic, partition


def _wait_for_all(scene: Scene, watcher: PartitionClaims, jobs: Mapping[int, subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + 120
    while any(one.picked_s is None for one in watcher.standings()):
        assert all(job.poll() is None for job in jobs.values()), scene.complaints()
        assert time.monotonic() < deadline, "not all partitions were claimed"
        time.sleep(LOOK_S)


def _works(scene: Scene, number: int) -> bool:
    log = scene.folder / f"job-{number}.log"
    return log.exists() and log.stat().st_size > 0


def _end(jobs: Mapping[int, subprocess.Popen[bytes]]) -> list[int]:
    for job in jobs.values():
        job.terminate()
    return sorted({job.wait(60) for job in jobs.values()})


def _kill(job: subprocess.Popen[bytes]) -> None:
    job.kill()
    job.wait()
