"""Processes that end with the test run, however that ends: also when pytest itself is killed."""

import contextlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil


def tied(command: Sequence[str]) -> list[str]:
    """The command so that the kernel kills it when this process ends; start it in the main thread.

    What is below it has to notice by itself: a JVM that pyspark started does, and so does the source's reader.
    """
    setpriv = shutil.which("setpriv")
    # Without util-linux only an orderly end of the tests ends it.
    return [*([setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []), *command]


def launch(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a tied process in a session of its own."""
    with log.open("ab") as output:
        return subprocess.Popen(
            tied(command), stdout=output, stderr=output, env=environment, cwd=cwd, start_new_session=True
        )


def tree(pid: int) -> list[psutil.Process]:
    """A process and all below it; empty where it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def kill(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL, and wait until they are gone."""
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(list(processes), timeout=10)
