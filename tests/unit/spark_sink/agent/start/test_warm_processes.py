"""Which Python Spark is told to start while processes are forked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_sink import warm_processes
from spark_sink.agent.start.warm_python import CHOSEN

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to a connection")


@pytest.mark.parametrize("before", [None, sys.executable])
def test_spark_is_told_the_command_within_the_block_only(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """After it, also after an error, the variable is as it was."""
    if before is None:
        monkeypatch.delenv(CHOSEN, raising=False)
    else:
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


def test_another_python_of_the_users_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules are not those of this environment."""
    monkeypatch.setenv(CHOSEN, str(tmp_path / "python"))
    with warm_processes() as forked:
        assert not forked
        assert os.environ[CHOSEN] == str(tmp_path / "python")
