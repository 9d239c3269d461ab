"""Members as processes, and what their words say together."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("member_process.py")
CONSUMER = Path(__file__).with_name("consumer_process.py")


class Process:
    """A member as a real process, with what it wrote."""

    def __init__(self, folder: Path, settings: dict[str, Any], name: str, script: Path = SCRIPT) -> None:
        self.name = name
        self.path = folder / f"{name}.jsonl"
        self.killed_at: float | None = None
        self._errors = folder / f"{name}.err"
        with self.path.open("a") as out, self._errors.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(script), json.dumps(settings)], stdout=out, stderr=errors
            )

    def lines(self) -> list[dict[str, Any]]:
        """What it wrote; a line that SIGKILL cut is left out."""
        return [json.loads(one) for one in self.path.read_text().split("\n")[:-1]]

    def owns(self) -> set[tuple[str, int]]:
        """The partitions it last reported as owned."""
        said = [one for one in self.lines() if one["event"] == "owns"]
        return {(t, p) for t, p in said[-1]["partitions"]} if said else set()

    def holds(self) -> set[tuple[str, int]]:
        """The partitions that its callbacks were given and have not given up; `owns` may come a moment later."""
        held: set[tuple[str, int]] = set()
        for line in self.lines():
            partitions = {(t, p) for t, p in line["partitions"]}
            if line["event"] == "assigned":
                held |= partitions
            elif line["event"] in {"revoked", "lost"}:
                held -= partitions
        return held

    def generation(self) -> int:
        """The generation of that report."""
        said = [one for one in self.lines() if one["event"] == "owns"]
        return int(said[-1]["generation"]) if said else -1

    def last(self, *events: str) -> str:
        """Which of these it wrote last; empty when none."""
        return next((str(one["event"]) for one in reversed(self.lines()) if one["event"] in events), "")

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(20)
        self.killed_at = time.monotonic()

    def terminate(self) -> None:
        """SIGTERM, and no waiting."""
        self._process.terminate()

    def exit_code(self, timeout_s: float) -> int:
        """How it ended, when it has."""
        return self._process.wait(timeout_s)

    def stop(self) -> None:
        """SIGTERM: it gives its partitions up and ends."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)
                raise

    def pause(self) -> None:
        """SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def errors(self) -> str:
        """What it wrote to standard error."""
        return self._errors.read_text()


Start = Callable[..., Process]
"""Starts a member by name."""


def settled(processes: list[Process], partitions: set[tuple[str, int]]) -> bool:
    """Whether they own all of these in one generation, each once."""
    owned = [one.owns() for one in processes]
    return (
        len({one.generation() for one in processes}) == 1
        and set().union(*owned) == partitions
        and sum(map(len, owned)) == len(partitions)
    )


def owned_twice(processes: list[Process]) -> list[tuple[int, str, int, list[str]]]:
    """Generation, topic, partition and owners of each partition that several reported as owned in one generation."""
    owners: dict[tuple[int, str, int], set[str]] = defaultdict(set)
    for process in processes:
        for line in process.lines():
            if line["event"] == "owns":
                for topic, partition in line["partitions"]:
                    owners[line["generation"], topic, partition].add(process.name)
    return [(*key, sorted(names)) for key, names in owners.items() if len(names) > 1]


def overlaps(processes: list[Process]) -> list[tuple[str, int, str, str]]:
    """Partitions that two processes held at the same time: from `assigned` to the end of `revoked`, or to SIGKILL.

    What a process told as `lost` does not count: the broker had given it away before the process could know, as on a
    machine too busy for a heartbeat, and refuses its commits.
    """
    spans: dict[tuple[str, int], list[tuple[float, float, str]]] = defaultdict(list)
    for process in processes:
        since: dict[tuple[str, int], float] = {}
        lines = process.lines()
        for line in lines:
            for topic, partition in line["partitions"] if line["event"] in {"assigned", "revoked", "lost"} else ():
                key = (topic, partition)
                if line["event"] == "assigned":
                    since[key] = line["at"]
                elif key in since:
                    began = since.pop(key)
                    if line["event"] == "revoked":
                        spans[key].append((began, line["at"], process.name))
        end = process.killed_at or float("inf")
        for key, begin in since.items():
            spans[key].append((begin, end, process.name))
    found = []
    for key, all_of_key in spans.items():
        ordered = sorted(all_of_key)
        found += [(*key, a[2], b[2]) for a, b in pairwise(ordered) if b[0] < a[1]]
    return found


def ownerless(processes: list[Process]) -> list[tuple[str, int, float, float]]:
    """Topic, partition, begin and end of each time between its first and its last owner in which it had none."""
    held: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for process in processes:
        since: dict[tuple[str, int], float] = {}
        for line in process.lines():
            for topic, partition in line["partitions"] if line["event"] in {"assigned", "revoked", "lost"} else ():
                if line["event"] == "assigned":
                    since[topic, partition] = line["at"]
                elif (topic, partition) in since:
                    held[topic, partition].append((since.pop((topic, partition)), line["at"]))
        for key, began in since.items():
            held[key].append((began, process.killed_at or float("inf")))
    gaps = []
    for key, spans in held.items():
        until = min(spans)[1]
        for began, ended in sorted(spans)[1:]:
            if began > until:
                gaps.append((*key, until, began))
            until = max(until, ended)
    return gaps


def deliveries(processes: list[Process]) -> Counter[tuple[str, int, int]]:
    """How often each record (topic, partition, offset) was delivered."""
    found: Counter[tuple[str, int, int]] = Counter()
    for process in processes:
        for line in process.lines():
            if line["event"] == "records":
                for topic, partition, offsets in line["spans"]:
                    found.update((topic, partition, offset) for offset in offsets)
    return found
