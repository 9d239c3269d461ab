"""Processes that ingest, with all that is below them, and the signals that they get."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from spark_sink.agent.start.worker_modules import DAEMON
from tests.integration.spark_sink.tied import launch

_MUTANTS = Path(__file__).with_name("mutants")


@dataclass
class Agent:
    """One process that the chaos starts, kills and stops."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    seen: set[psutil.Process] = field(default_factory=set)

    def start(self) -> None:
        """Start it, for the first time or again; processes left from the last run keep running."""
        environment = {**os.environ, **self.environment}
        if "AZIMUTH_CHAOS_MUTANT" in environment:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_MUTANTS), environment.get("PYTHONPATH")]))
        self.process = launch(self.command, self.log, environment)

    @property
    def alive(self) -> bool:
        """Whether its first process runs."""
        return self.process is not None and self.process.poll() is None

    def tree(self) -> list[psutil.Process]:
        """Every process of it, the one that was started first."""
        if not self.alive or self.process is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self.process.pid)
            tree = [driver, *driver.children(recursive=True)]
            self.seen.update(tree)
            return tree
        return []

    def part(self, name: str) -> list[psutil.Process]:
        """The processes that a fault hits: all, the driver, the JVM, the reader, or Spark's Python workers."""
        tree = self.tree()
        if name in {"agent", "driver"}:
            return tree if name == "agent" else tree[:1]
        return [process for process in tree[1:] if _kind(process) == name]

    def end(self) -> None:
        """Kill all of it that was ever seen."""
        self.tree()
        for process in self.seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if self.process is not None:
            self.process.wait()


PARTS: Final = frozenset({"agent", "driver", "jvm", "reader", "worker"})
"""The parts of an agent that a fault can hit."""


def send(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, of which some may be gone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _kind(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        # The title of a forked process is one word.
        command = " ".join(process.cmdline()).split()
        if command and Path(command[0]).name == "java":
            return "jvm"
        if any("python_streaming_source_runner" in word for word in command):
            return "reader"
        if {"pyspark.daemon", DAEMON} & set(command) and process.ppid() != 1:
            return "worker"
    return ""
