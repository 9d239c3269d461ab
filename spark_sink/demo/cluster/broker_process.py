"""One broker's process: starts, watches and kills it, and never confuses it with a later process of the same id."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from spark_sink.demo.cluster.broker import Broker
from spark_sink.demo.cluster.broker_assignors import class_path
from spark_sink.errors import ClusterError

_HEAP = "-Xms256m -Xmx512m -XX:+UseSerialGC -Xshare:auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process id with its start time, because the system may reuse the id for another process."""

    pid: int
    created: float

    def find(self) -> psutil.Process | None:
        """Return the live process, or None if it has ended."""
        try:
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.created) >= 1.0:
                return None
            if process.status() == psutil.STATUS_ZOMBIE:
                process.wait(0)  # reaps the process, if this process is its parent
                return None
        except psutil.Error:
            return None
        return process

    def send(self, signal_number: int) -> bool:
        """Send a signal; return False if the process has ended.

        Raises:
            ClusterError: the process belongs to another user.
        """
        process = self.find()
        if process is None:
            return False
        with contextlib.suppress(psutil.NoSuchProcess), self._of_another_user():
            process.send_signal(signal_number)
        return True

    def kill(self, timeout_s: float = 10.0) -> None:
        """Send SIGKILL, and wait until the process is gone.

        Raises:
            ClusterError: the process belongs to another user.
        """
        process = self.find()
        if process is None:
            return
        with contextlib.suppress(psutil.Error), self._of_another_user():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(timeout_s)

    @contextlib.contextmanager
    def _of_another_user(self) -> Iterator[None]:
        """Say in a sentence that this user may not signal the process."""
        try:
            yield
        except psutil.AccessDenied as error:
            raise ClusterError(f"process {self.pid} belongs to another user: run this command as that user") from error


def broker_command(broker: Broker, directory: Path, java: Sequence[str], jars: Path) -> list[str]:
    """Return the command of a broker.

    Args:
        broker: of the cluster.
        directory: of the cluster, with the files that `format_storage` has written.
        java: the command of Java and further options.
        jars: folder of Kafka's jars.
    """
    return [
        *java,
        *_HEAP.split(),
        f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}",
        "-cp",
        class_path(jars, directory),
        "kafka.Kafka",
        str(directory / f"broker-{broker.id}.properties"),
    ]


def tie(command: list[str]) -> list[str]:
    """Wrap a command so that the kernel kills it when this process ends (Linux with util-linux; else unchanged)."""
    # The kernel watches the thread that forked: if that thread ends early, the kernel kills the process.
    if threading.current_thread() is not threading.main_thread():
        return command
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else command


def launch(command: list[str], *, log: Path, tied: bool) -> ProcessIdentity:
    """Start a process in a new session, so that Ctrl-C in the terminal does not reach it directly.

    Args:
        command: the command to start.
        log: file for its output.
        tied: the kernel kills it when this process ends, for any reason (Linux with util-linux; else ignored).
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
    # The identity outlives this object, and psutil reaps the process; without this, Popen warns on its deletion.
    process.returncode = 0
    return ProcessIdentity(pid=process.pid, created=psutil.Process(process.pid).create_time())


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block: a process that starts in the block is recorded before the exception."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


def last_lines(log: Path) -> str:
    """Return the last 15 lines of a log file; empty if the file does not exist."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def wait_until_gone(identities: list[ProcessIdentity], timeout_s: float) -> list[ProcessIdentity]:
    """Wait for processes to end, and return those that are still alive after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    alive = identities
    while alive and time.monotonic() < deadline:
        alive = [i for i in alive if i.find() is not None]
        time.sleep(0.05)
    return alive
