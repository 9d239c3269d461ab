"""One broker's process: started, watched, killed, and never confused with another that has its old id."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process and when it began: the system may have given the number to another process since."""

    pid: int
    created: float

    def find(self) -> psutil.Process | None:
        """The live process, or None when it has ended."""
        try:
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.created) >= 1.0:
                return None
            if process.status() == psutil.STATUS_ZOMBIE:
                process.wait(0)  # takes the exit status, if we are the parent
                return None
        except psutil.Error:
            return None
        return process

    def send(self, signal_number: int) -> bool:
        """Send a signal; False when the process has ended."""
        process = self.find()
        if process is None:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal_number)
        return True

    def kill(self, timeout_s: float = 10.0) -> None:
        """SIGKILL and wait until it is gone."""
        process = self.find()
        if process is None:
            return
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(timeout_s)


def tie(command: list[str]) -> list[str]:
    """The command of a process that the kernel kills when this one ends (Linux, with util-linux; else as it is)."""
    # The kernel means the thread that forked: one that ends early would take what it started with it.
    if threading.current_thread() is not threading.main_thread():
        return command
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else command


def launch(command: list[str], *, log: Path, tied: bool) -> ProcessIdentity:
    """Start a process in a session of its own, so that Ctrl-C reaches it only through us.

    Args:
        command: what to start.
        log: takes its output.
        tied: the kernel kills it when this process ends, however it ends (Linux, with util-linux; elsewhere ignored).
    """
    if tied:
        command = tie(command)
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # The identity outlives this object, and psutil reaps; without this, Popen warns when it is collected.
    process.returncode = 0
    return ProcessIdentity(pid=process.pid, created=psutil.Process(process.pid).create_time())


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block: a process that starts in it is known before anything unwinds."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log file; empty when there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:])


def wait_until_gone(identities: list[ProcessIdentity], timeout_s: float) -> list[ProcessIdentity]:
    """Those that are still alive after so many seconds."""
    deadline = time.monotonic() + timeout_s
    alive = identities
    while alive and time.monotonic() < deadline:
        alive = [i for i in alive if i.find() is not None]
        time.sleep(0.05)
    return alive
