"""The Python that Spark starts while its processes are forked."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spark_sink import warm_processes
from spark_sink.agent.start.warm_python import CHOSEN

_MULTIPLIES = """
import os, numpy
numpy.ones((999, 999)) @ numpy.ones((999, 999))
print(len(os.listdir("/proc/self/task")))
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to a connection")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests start agents, which choose a Python in this process."""
    monkeypatch.delenv(CHOSEN, raising=False)


@pytest.mark.parametrize("before", [None, sys.executable])
def test_the_variable_names_the_command_within_the_block_only(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it, also after an error, the variable is as it was."""
    if before is not None:
        monkeypatch.setenv(CHOSEN, before)

    def fail_within() -> None:
        with warm_processes() as forked:
            assert forked
            said = subprocess.run([os.environ[CHOSEN], "-m", "calendar", "2026", "1"], check=True, capture_output=True)
            assert b"January 2026" in said.stdout
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        fail_within()
    assert os.environ.get(CHOSEN) == before


def test_the_name_of_this_python_on_the_path_is_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """`PYSPARK_PYTHON=python3` is the usual form."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(CHOSEN, Path(sys.executable).name)
    with warm_processes() as forked:
        assert forked


def test_a_child_of_the_driver_does_not_hold_the_block_open() -> None:
    """It inherits the server's standard input, whose end the server waits for."""
    with warm_processes():
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("PYTHONHASHSEED", "print(hash('a'))"),
        ("OMP_NUM_THREADS", _MULTIPLIES),
    ],
)
def test_a_forked_process_is_as_its_environment_says(
    name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark sets both; the interpreter and numpy read them when they start, which is before the fork."""
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    (tmp_path / "said.py").write_text(code)
    with warm_processes():
        one, other = (
            subprocess.run([python, "-m", "said"], check=True, capture_output=True).stdout
            for python in (os.environ[CHOSEN], sys.executable)
        )
    assert one == other


def test_another_python_of_the_users_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules are not those of this environment."""
    monkeypatch.setenv(CHOSEN, str(tmp_path / "python"))
    with warm_processes() as forked:
        assert not forked
        assert os.environ[CHOSEN] == str(tmp_path / "python")
