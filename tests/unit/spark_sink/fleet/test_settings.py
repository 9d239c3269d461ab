"""What a fleet is told, and what is said where that makes no sense."""

from pathlib import Path

import pytest

from assignors.fleet import StaticMembers
from spark_sink.cli import main
from spark_sink.fleet._run import members
from spark_sink.fleet._settings import FleetSettings

GOOD = """
agent = "a"
name = "f"
table = "/lake/{cluster}"
[sources.one]
bootstrap_servers = "127.0.0.1:9092"
pattern = ".*"
kafka = { "client.id" = "x" }
[sources.two]
bootstrap_servers = "127.0.0.1:9093"
topics = ["t"]
[workers]
default = 2
patterns = { "big.*" = 3 }
overrides = { "t" = ["a", "b"], "u" = 4 }
[membership]
kind = "static"
agents = [{ id = "a" }, { id = "b", capacity = 2.0 }]
"""


def test_a_file_serves_all_agents_and_the_environment_tells_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings become values of the fleet."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "b")
    monkeypatch.setenv("AZIMUTH_FLEET_CAPACITY", "2.5")
    found = FleetSettings.load(file)
    assert (found.agent_id.id, found.agent_id.capacity) == ("b", 2.5)
    assert found.kafka("one") == {"bootstrap.servers": "127.0.0.1:9092", "client.id": "x"}
    assert found.fleet_workers.overrides == {"t": ("a", "b"), "u": 4}
    assert found.home == "one"
    assert isinstance(members(found), StaticMembers)
    kafka, static = '[membership]\nhome = "two"', GOOD[GOOD.index("[membership]") :]
    file.write_text(GOOD.replace(static, kafka))
    assert FleetSettings.load(file).home == "two"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("/lake/{cluster}", "/lake", "put {cluster} into the address"),
        ('pattern = ".*"', 'pattern = "("', "no regular expression"),
        ('pattern = ".*"', "", "give topics, a pattern, or both"),
        ('agent = "a"', "", "agent: Field required"),
        ('agent = "a"', 'agent = "a"\nnonsense = 1', "nonsense: Extra inputs"),
        ('agent = "a"', 'agent = "a"\ncapacity = 0', "capacity=0"),
        ('agent = "a"', 'agent = "a"\nlanes = 0', "lanes=0"),
        ('agent = "a"', 'agent = "a"\nepsilon = -1', "epsilon=-1"),
        ('agent = "a"', 'agent = "c"', "'c' is none of the static members"),
        ("default = 2", "default = 0", "workers: 0"),
        ('["a", "b"]', "[]", "override for 't'"),
        ('kind = "static"', 'kind = "zookeeper"', "membership"),
        ("[sources.one]", "[sources.one", "is not TOML"),
    ],
    ids=[
        "one table",
        "pattern",
        "no topics",
        "no agent",
        "unknown",
        "capacity",
        "lanes",
        "epsilon",
        "static",
        "workers",
        "override",
        "membership",
        "toml",
    ],
)
def test_a_wrong_file_is_one_sentence_and_exit_code_2(
    before: str, after: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, the value and the way out."""
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--config", str(file)])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("azimuth: ")
    assert error.count("\n") == 1
