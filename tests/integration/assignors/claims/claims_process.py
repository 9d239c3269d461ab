"""A job that claims, commits and disowns, and records the answers; tests run, kill and stop it as a process.

Usage: python claims_process.py SETTINGS, a JSON text: what `PartitionClaims` takes; `mode`, `most`, `log`, `seconds`.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from assignors.claims import Claim, ClaimLostError, ClaimsAwayError, Form, Lease, PartitionClaims

PAUSE_S = 0.02
GHOSTS = 3


class Job:
    """One process's claims.

    Args:
        claims: of this process.
        most: how many it wants to hold.
        log: where it writes what it was told, a JSON line each.
    """

    def __init__(self, claims: PartitionClaims, most: int, log: Path) -> None:
        self._claims = claims
        self._most = most
        self._file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._held: dict[Claim, float] = {}
        self._ghosts: list[Claim] = []
        self._commits = 0
        self._random = random.Random()

    def step(self) -> None:
        """Claim, commit, try what must be refused, disown some."""
        if len(self._held) < self._most:
            new = self._claims.claim(self._most - len(self._held))
            # The lease began before its answer, so it ends at most one lease after this.
            self._held |= dict.fromkeys(new, time.monotonic())
            for one in new:
                self._say("claim", one, seen=one.committed_offset, waited_s=one.waited_s)
        self._commit(list(self._held))
        for ghost in self._ghosts:
            self._commit([ghost], ghost=True)
        gone = self._random.sample(sorted(self._held), len(self._held) // 3)
        self._claims.disown(gone)
        for one in gone:
            del self._held[one]
        self._ghosts = [*gone[:GHOSTS], *self._ghosts][:GHOSTS]

    def _commit(self, claims: list[Claim], *, ghost: bool = False) -> None:
        """Commit; a claim is late when its lease was over before the commit was sent, whatever clock is right."""
        if not claims:
            return
        self._commits += 1
        before = time.monotonic()
        # Rises with the epoch and within it: whoever claims next can tell whose the offset is.
        offsets = {one: one.epoch * 100_000 + self._commits % 100_000 for one in claims}
        lost: tuple[Claim, ...] = ()
        try:
            self._claims.commit(offsets)
        except ClaimLostError as error:
            lost = error.lost
        for one, offset in offsets.items():
            late = ghost or before - self._held.get(one, before) > self._claims.lease.lease_s
            self._say("refused" if one in lost else "commit", one, value=offset, late=late)
            if one in lost:
                self._held.pop(one, None)
            elif not ghost:
                self._held[one] = time.monotonic()

    def _say(self, what: str, claim: Claim, **more: Any) -> None:
        line = {"what": what, "key": [claim.topic, claim.partition], "epoch": claim.epoch, **more}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def tell(self, what: str, **more: Any) -> None:
        """Write down something of the process."""
        os.write(self._file, json.dumps({"what": what, **more}).encode() + b"\n")


def rate(claims: PartitionClaims, most: int, seconds: float, job: Job) -> None:
    """Claim and disown as fast as it goes, from a signal on."""
    claims.disown(claims.claim(most))  # connects
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    job.tell("ready")
    signal.sigwait({signal.SIGUSR1})
    count = calls = 0
    spent_s = 0.0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        held = claims.claim(most)
        spent_s += time.monotonic() - began
        claims.disown(held)
        count += len(held)
        calls += 1
    job.tell("rate", claims=count, calls=calls, seconds=seconds, claim_ms=1000 * spent_s / max(1, calls))


def main() -> None:
    """Work until SIGTERM."""
    given = json.loads(sys.argv[1])
    mode, most, log, seconds = (given.pop(name) for name in ("mode", "most", "log", "seconds"))
    given |= {"form": Form(given["form"]), "lease": Lease(lease_s=given.pop("lease_s"))}
    ended = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    with PartitionClaims(given.pop("address"), **given) as claims:
        job = Job(claims, most, Path(log))
        if mode == "rate":
            rate(claims, most, seconds, job)
            return
        while not ended:
            try:
                job.step()
            except ClaimsAwayError as error:
                job.tell("away", error=str(error))
            time.sleep(random.uniform(0, 2 * PAUSE_S))


if __name__ == "__main__":
    main()
