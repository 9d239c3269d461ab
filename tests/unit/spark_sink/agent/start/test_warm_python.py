"""Python processes that are forked from one with its modules loaded, and the command that stands in for `python`."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from spark_sink.agent.start.warm_python import warm_python
from spark_sink.source.orphan_watch import STARTED_BY, relatives
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to a connection")
_SAYS = """
import json, os, sys
said = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ), "name": __name__}
said |= {"pid": os.getpid(), "group": os.getpgid(0), "loaded": "deltalake" in sys.modules, "read": sys.stdin.readline()}
print(json.dumps(said), flush=True)
sys.stdin.read()
sys.exit(7)
"""
_LEAVES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("ready", flush=True)
while True:
    time.sleep(60)
"""
_DIES = """
import os, signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGPIPE)
"""


@pytest.fixture(scope="module")
def python() -> Iterator[str]:
    """The command, with a server behind it that has loaded its modules."""
    with warm_python() as command:
        assert command is not None
        yield str(command)


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with modules to run."""
    (tmp_path / "says.py").write_text(_SAYS)
    (tmp_path / "leaves.py").write_text(_LEAVES)
    (tmp_path / "dies.py").write_text(_DIES)
    return tmp_path


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(modules: Path) -> Iterator[Start]:
    """Starts a command with a module, and kills it at the end of the test."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(modules), *sys.path]), "GIVEN": "here"}
    with contextlib.ExitStack() as opened:

        def run(*command: str) -> "subprocess.Popen[str]":
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=modules, env=environment
            )
            opened.enter_context(process)
            opened.callback(process.kill)
            return process

        yield run


def _said(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018 -- for the types
    process.stdin.write("a line\n")
    process.stdin.flush()
    said: dict[str, Any] = json.loads(process.stdout.readline())
    return said


def test_a_module_runs_as_python_would_run_it(python: str, start: Start, modules: Path) -> None:
    """Its arguments, folder, environment, files and exit code are those of the command; its modules are loaded."""
    process = start(python, "-m", "says", "one", "two words")
    said = _said(process)
    assert said["arguments"] == ["one", "two words"]
    assert said["folder"] == str(modules)
    assert said["environment"] | {"GIVEN": "here"} == said["environment"]
    assert (said["name"], said["read"], said["loaded"]) == ("__main__", "a line\n", True)
    assert said["pid"] != process.pid
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 7


def test_what_is_no_module_runs_in_the_interpreter_itself(python: str, start: Start) -> None:
    """Spark asks for the version with `-c`."""
    process = start(python, "-c", "import os; print(os.getpid())")
    assert process.communicate()[0] == f"{process.pid}\n"


def test_a_process_whose_client_is_killed_dies_with_its_group(python: str, start: Start) -> None:
    """Also if it is stopped: Spark and a fault know the client only."""
    for extra in ((), ("a daemon's module",)):
        process = start(python, "-m", "says", *extra)
        forked = psutil.Process(_said(process)["pid"])
        forked.send_signal(signal.SIGSTOP)
        process.kill()
        process.wait(60)
        wait_until(lambda forked=forked: not _lives(forked))  # type: ignore[misc]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False


def test_a_daemon_leads_a_group_and_a_reader_stays_in_its_clients(python: str, start: Start) -> None:
    """What a daemon forks must die with it; what is sent to an agent's group must reach its reader."""
    reader, daemon = start(python, "-m", "says"), start(python, "-m", "says", "worker")
    said_by_reader, said_by_daemon = _said(reader), _said(daemon)
    assert said_by_reader["group"] == os.getpgid(0)
    assert said_by_daemon["group"] == said_by_daemon["pid"]


def _handles_sigterm(process: int) -> bool:
    handled = Path(f"/proc/{process}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(handled, 16) & 1 << signal.SIGTERM - 1)


def test_the_signal_that_ends_a_reader_reaches_it(python: str, start: Start) -> None:
    """The reader leaves its group when Spark ends it."""
    process = start(python, "-m", "leaves")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: _handles_sigterm(process.pid), 60)  # the process may be ready before the shell
    process.terminate()
    assert process.wait(60) == 5


def test_a_client_ends_as_its_process_did(python: str, start: Start) -> None:
    """A killed process is not mistaken for one that failed."""
    process = start(python, "-m", "says")
    os.kill(_said(process)["pid"], signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL


def test_a_signal_that_the_client_ignores_is_not_taken_for_success(python: str, start: Start) -> None:
    """Python ignores SIGPIPE, and what it starts inherits that."""
    assert start(python, "-m", "dies").wait(60) in {-signal.SIGPIPE, 128 + signal.SIGPIPE}


def test_a_forked_reader_watches_what_is_above_its_client(
    python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM is above the client, not above the forked process."""
    process = start(python, "-m", "says")
    said = _said(process)
    monkeypatch.setenv(STARTED_BY, said["environment"][STARTED_BY])
    assert [one.pid for one in relatives()] == [process.pid]


def test_without_a_server_the_command_is_the_interpreter(start: Start) -> None:
    """The server may be killed; an agent goes on without it."""
    with warm_python() as command:
        assert command is not None
        (server,) = (one for one in psutil.Process().children() if str(command.parent) in one.cmdline())
        server.kill()
        wait_until(lambda: not _lives(server))
        process = start(str(command), "-m", "says")
        said = _said(process)
        assert (said["pid"], said["loaded"]) == (process.pid, False)


def test_the_server_ends_with_the_driver_however_it_ends(start: Start) -> None:
    """Nothing stays behind: no process, and no folder."""
    code = "import sys, time\nfrom spark_sink.agent.start.warm_python import warm_python\n"
    code += "with warm_python() as command:\n    print(command, flush=True)\n    time.sleep(600)\n"
    driver = start(sys.executable, "-c", code)
    assert driver.stdout is not None
    folder = Path(driver.stdout.readline().strip()).parent
    (server,) = psutil.Process(driver.pid).children()
    process = start(str(folder / "python"), "-m", "leaves")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    driver.kill()
    driver.wait(60)
    wait_until(lambda: not _lives(server))
    wait_until(lambda: not folder.exists())


def test_ctrl_c_does_not_end_a_server_that_starts(start: Start) -> None:
    """It goes to all processes of a terminal; the server printed a traceback if its interpreter was still starting."""
    before = psutil.Process().children()
    with warm_python() as command:
        (server,) = [process for process in psutil.Process().children() if process not in before]
        wait_until(lambda: "fork_server" in " ".join(server.cmdline()[:3]))
        server.send_signal(signal.SIGINT)
        assert _said(start(str(command), "-m", "says"))["loaded"]


def test_a_kernel_that_cannot_tie_processes_leaves_spark_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox may have fewer system calls than Linux 5.3."""

    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with warm_python() as command:
        assert command is None


def test_a_folder_that_runs_nothing_leaves_spark_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder may be mounted without the right to execute."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with warm_python() as command:
        assert command is None
