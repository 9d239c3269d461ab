"""Agents without a name make one, and have the same one after a restart."""

import threading
import uuid
from pathlib import Path

import pytest

from spark_sink.errors import OptionError
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.fleet.kept_agent_name import kept_name

FILE = """
name = "f"
table = "/lake"
[sources.one]
bootstrap_servers = "127.0.0.1:9092"
pattern = ".*"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet's file without the name of an agent."""
    monkeypatch.delenv("AZIMUTH_FLEET_AGENT", raising=False)
    file = tmp_path / "fleet.toml"
    file.write_text(FILE)
    return file


def test_an_agent_keeps_its_name_beside_its_status_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart it gets its topics back; with another status file it is another agent."""
    names = []
    for status in ("one.json", "two.json", "one.json"):
        monkeypatch.setenv("AZIMUTH_FLEET_STATUS_FILE", str(config.with_name(status)))
        found = FleetSettings.load(config)
        assert found.agent == found.agent_id.id
        assert found.kafka("one")["client.id"] == f"azimuth.{found.agent}.one"
        names.append(found.agent)
    assert names[0] == names[2] != names[1]
    assert str(uuid.UUID(names[0])) == names[0]
    assert sorted(one.name for one in config.parent.iterdir()) == ["fleet.toml", "one.json.agent", "two.json.agent"]


def test_a_given_name_comes_before_a_kept_one(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is written then."""
    config.write_text(f'status_file = "{config.parent}/s.json"\n{FILE}')
    assert FleetSettings.load(config, agent="status").agent == "status"
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "given")
    assert FleetSettings.load(config).agent == "given"
    assert not config.with_name("s.json.agent").exists()


def test_without_a_status_file_or_in_a_static_fleet_a_name_is_needed(config: Path) -> None:
    """A name that is not kept would be another agent at each start; a static fleet lists its names."""
    with pytest.raises(OptionError, match=r"agent is missing, .* set --agent .*, or a status_file that keeps a name"):
        FleetSettings.load(config)
    static = '[membership]\nkind = "static"\nagents = [{ id = "a" }]'
    config.write_text(f'status_file = "{config.parent}/s.json"\n{FILE}{static}')
    with pytest.raises(OptionError, match=r"agent is missing, .* set --agent or AZIMUTH_FLEET_AGENT$"):
        FleetSettings.load(config)
    assert not config.with_name("s.json.agent").exists()


@pytest.mark.parametrize("content", [b"", b"a b\n", b"\xff"], ids=["empty", "another text", "no text"])
def test_a_file_without_a_name_is_said_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    """A new name would leave the former topics to an agent that never returns."""
    (tmp_path / "s.json.agent").write_bytes(content)
    with pytest.raises(OptionError, match=r"s.json.agent: does not contain the name of an agent: remove the file"):
        kept_name(tmp_path / "s.json")


def test_a_folder_that_does_not_exist_is_said_in_one_sentence(tmp_path: Path) -> None:
    """The status of such an agent cannot be written either, but that ends nothing."""
    with pytest.raises(OptionError, match="the agent's name cannot be kept: No such file or directory; give --agent"):
        kept_name(tmp_path / "none" / "s.json")


def test_processes_that_start_together_have_one_name(tmp_path: Path) -> None:
    """The membership then refuses all but one of them, and each says that its name is in use."""
    names: list[str] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        names.append(kept_name(tmp_path / "s.json"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(names) == 8
    assert len(set(names)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["s.json.agent"]
