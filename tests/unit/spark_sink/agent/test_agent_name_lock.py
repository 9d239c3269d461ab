"""Names and checkpoints that two agents must not share."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_sink.agent.agent_name_lock import only_agent_of_its_checkpoint, only_agent_of_its_name
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.errors import OptionError


def settings(root: Path, **other: str) -> AgentSettings:
    """Settings of an agent."""
    given = {
        "bootstrap_servers": "a:1,b:2",
        "group": "g",
        "table": str(root / "table"),
        "checkpoint": str(root / "checkpoint"),
        "subscribe": "t",
        "agent": "one",
    }
    return AgentSettings.load(None, {**given, **other})


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks in a folder of the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_second_agent_of_one_name_is_refused(tmp_path: Path) -> None:
    """The group would treat the two members as one agent, and their commits could not be distinguished."""
    with only_agent_of_its_name(settings(tmp_path)):
        with (
            pytest.raises(OptionError, match=r"agent 'one' of group 'g' is running on this machine already.*--agent"),
            only_agent_of_its_name(settings(tmp_path, bootstrap_servers="b:2, a:1", table="elsewhere")),
        ):
            pytest.fail("both run")
        with only_agent_of_its_name(settings(tmp_path, agent="two")):
            pass
        with only_agent_of_its_name(settings(tmp_path, group="h")):
            pass
    with only_agent_of_its_name(settings(tmp_path)):
        pass


def test_a_name_is_free_again_when_its_process_was_killed(tmp_path: Path) -> None:
    """A supervisor restarts the agent immediately, without a cleanup in between."""
    program = (
        "import sys, tempfile, time; tempfile.tempdir = sys.argv[1]\n"
        "from pathlib import Path\n"
        "from tests.unit.spark_sink.agent.test_agent_name_lock import settings\n"
        "from spark_sink.agent.agent_name_lock import only_agent_of_its_name\n"
        "with only_agent_of_its_name(settings(Path(sys.argv[1]))):\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(OptionError, match="running"), only_agent_of_its_name(settings(tmp_path)):
            pytest.fail("both run")
    finally:
        child.kill()
        child.communicate()
    with only_agent_of_its_name(settings(tmp_path)):
        pass


def test_a_second_agent_of_one_checkpoint_is_refused_however_its_address_is_written(tmp_path: Path) -> None:
    """Spark let the second agent read for a while, and then ended one of them with a sentence about `metadata`."""
    place = tmp_path / "checkpoint"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    same = [
        str(place),
        f"{place}/",
        f"file://{place}",
        f"file:{place}",
        str(tmp_path / "link"),
        f"{tmp_path}/x/../link",
    ]
    with only_agent_of_its_checkpoint(settings(tmp_path)):
        for address in same:
            with (
                pytest.raises(
                    OptionError, match=r"checkpoint .* is in use by another agent on this machine.*--checkpoint"
                ),
                only_agent_of_its_checkpoint(settings(tmp_path, agent="two", checkpoint=address)),
            ):
                pytest.fail(f"both use {address}")
        for other in (str(tmp_path / "other"), "s3://lake/checkpoint"):
            with only_agent_of_its_checkpoint(settings(tmp_path, checkpoint=other)):
                pass
    with only_agent_of_its_checkpoint(settings(tmp_path)):
        pass
