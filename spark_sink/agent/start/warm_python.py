"""Starts the fork server, and gives Spark the command that stands in for `python`."""

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from spark_sink.agent.start import fork_client

CHOSEN = "PYSPARK_PYTHON"
"""The variable that names the Python of Spark's processes."""
_SERVER = "spark_sink.agent.start.fork_server"
# Spark ends a reader with SIGTERM, which the reader uses to leave its group. A signal interrupts `read`. The server
# sends the exit code, or minus the signal that ended the process; without a server there is nothing to wait for. A
# shell that started with an ignored signal cannot die of it.
_WAIT = f"""trap 'signalled=1; kill -TERM "$1" 2>/dev/null' TERM
while signalled=; ! read -r status <&{fork_client.KEPT_OPEN}; do
    [ "$signalled" ] || exit 1
done
case $status in
-*) trap - TERM; kill "$status" $$; exit $((128 - status)) ;;
*) exit "$status" ;;
esac
"""
# Ctrl-C goes to the whole group, and the server ignores it; so it does from before the interpreter's start, which
# would otherwise end with a traceback.
_IGNORING_CTRL_C = ("/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh")


@contextlib.contextmanager
def warm_processes() -> Iterator[bool]:
    """Fork Spark's Python processes from one that has loaded their modules, during the block.

    Open and stop the session within the block. Its master must be local: other machines do not have the command. A
    query in a running session starts 0.8 s earlier, the first query of a session 3.5 s. `azimuth sink` does this by
    itself. Not for two threads at once, because PYSPARK_PYTHON is the process's. A session that was open before the
    block is not changed, and one that outlives it cannot start Python processes.

    Yields:
        Whether processes are forked: not on systems other than Linux, nor if PYSPARK_PYTHON names another Python.
    """
    before = os.environ.get(CHOSEN)
    with contextlib.ExitStack() as opened:
        command = opened.enter_context(warm_python()) if _is_this_python(before or sys.executable) else None
        if command is not None:
            opened.callback(_choose, before)
            _choose(str(command))
        yield command is not None


def _choose(python: str | None) -> None:
    if python is None:
        os.environ.pop(CHOSEN, None)
    else:
        os.environ[CHOSEN] = python


def _is_this_python(command: str) -> bool:
    """Whether a command is this interpreter in this environment, also under another of its names."""
    chosen, this = Path(shutil.which(command) or command), Path(sys.executable)
    return chosen == this or (chosen.parent == this.parent and chosen.exists() and chosen.samefile(this))


@contextlib.contextmanager
def warm_python() -> Iterator[Path | None]:
    """Serve forked processes during the block.

    Yields:
        An executable that takes the arguments of `python`; None where processes cannot be forked this way.
    """
    folder = Path(tempfile.mkdtemp(prefix="azimuth-python-"))
    with contextlib.ExitStack() as opened:
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        command = _command(folder)
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        if command is None or not _listens(listener, folder):
            yield None
            return
        server = opened.enter_context(
            subprocess.Popen(  # noqa: S603 -- this project's own module
                [*_IGNORING_CTRL_C, sys.executable, "-m", _SERVER, str(listener.fileno()), str(folder)],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                env=_environment(),
            )
        )
        listener.close()
        # Not only the end of its input: a child that the driver has forked may hold that open.
        opened.callback(server.kill)
        yield command


def _environment() -> dict[str, str]:
    """Return the server's environment: an interpreter and numpy read some of it at their start, before the fork."""
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def _listens(listener: socket.socket, folder: Path) -> bool:
    try:
        listener.bind(str(folder / "socket"))
    except OSError:  # the path is too long
        return False
    listener.listen()
    return True


def _ties_processes() -> bool:
    """Whether the kernel can do what the server needs: Linux since 5.3."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _command(folder: Path) -> Path | None:
    """Write the executable; None if this file system runs none, or the kernel does not tie processes."""
    if not _ties_processes():
        return None
    words = [sys.executable, "-I", "-S", fork_client.__file__, str(folder / "socket"), sys.executable]
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    command.chmod(0o700)
    (folder / fork_client.WAITING).write_text(_WAIT)
    return command if os.access(command, os.X_OK) else None
