"""The agents' processes: starts them, kills them in whole or in part, and leaves none behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

import psutil

from spark_sink.demo.cluster.broker_process import tie

_PR_SET_CHILD_SUBREAPER = 36


class Part(StrEnum):
    """The part of an agent that a fault hits."""

    WHOLE = "whole"
    DRIVER = "driver"
    JVM = "jvm"
    READER = "reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProcess:
    """A running agent: the driver's Python, its JVM, Spark's Python daemon and the reader below it."""

    name: str
    driver: psutil.Popen
    log: Path

    @classmethod
    def launch(cls, name: str, *, config: Path, log: Path) -> Self:
        """Start `azimuth sink` with `config`, tied to this process; its output and Spark's go to `log`."""
        # Tying the driver is enough: its JVM ends when the driver's pipe closes, and its reader when the query ends.
        command = tie([sys.executable, "-m", "spark_sink", "sink", "--config", str(config)])
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with log.open("ab") as output:
            driver = psutil.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        return cls(name=name, driver=driver, log=log)

    def is_alive(self) -> bool:
        """Whether the driver runs."""
        return self.driver.poll() is None

    def tree(self) -> list[psutil.Process]:
        """Every living process of the agent, the driver first."""
        if not self.is_alive():
            return []
        try:
            return [self.driver, *self.driver.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def part(self, part: Part) -> list[psutil.Process]:
        """The processes that a fault of this kind hits."""
        tree = self.tree()
        if part is Part.WHOLE:
            return tree
        if part is Part.DRIVER:
            return tree[:1]
        return [p for p in tree[1:] if _kind(p) is part]

    def kill(self, part: Part = Part.WHOLE) -> list[psutil.Process]:
        """Send SIGKILL, and return the killed processes."""
        hit = self.part(part)
        for process in hit:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return hit

    def stop(self) -> None:
        """Send SIGTERM to the driver: it ends its query, and its reader leaves the group."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.driver.send_signal(signal.SIGTERM)

    def connections(self, ports: frozenset[int]) -> int:
        """Count the agent's open TCP connections to these ports."""
        count = 0
        for process in self.tree():
            with contextlib.suppress(psutil.Error):
                found = process.net_connections(kind="tcp")
                count += sum(1 for c in found if c.status == "ESTABLISHED" and c.raddr and c.raddr.port in ports)
        return count


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, so that it can find and end them.

    Spark's Python daemon leaves the driver's process group and outlives a killed driver. Linux only; no effect
    elsewhere.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> int:
    """Send SIGKILL to all descendants, and return how many were still alive."""
    left = psutil.Process().children(recursive=True)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5.0)
    return len(left)


def _kind(process: psutil.Process) -> Part | None:
    with contextlib.suppress(psutil.Error):
        command = process.cmdline()
        if command and Path(command[0]).name == "java":
            return Part.JVM
        if any("python_streaming_source_runner" in word for word in command):
            return Part.READER
    return None
