"""The questions of `azimuth agent --check`."""

from pathlib import Path

import pytest

from spark_sink.checks import Check, Finding, State
from spark_sink.fleet import agent_checks
from spark_sink.fleet.fleet_settings import FleetSettings

SOURCES = (("near", 1), ("far", 2))


@pytest.mark.parametrize(
    ("membership", "place"),
    [
        ('kind = "redis", url = "redis://:canary@r:6379/0"', "Redis at redis://***@r:6379/0"),
        ('kind = "kafka", home = "far"', "b:2"),
    ],
)
def test_the_question_about_the_name_has_the_address_of_the_membership(
    membership: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If no answer comes in time, its sentence says to check the address: it did not say which one."""
    asked: list[Check] = []

    def kept(checks: list[Check]) -> list[Finding]:
        asked.extend(checks)
        return [Finding(subject=one.subject, state=State.OK, text="") for one in checks]

    monkeypatch.setattr(agent_checks, "run", kept)
    sources = "".join(f'[sources.{name}]\nbootstrap_servers = "b:{n}"\npattern = "a"\n' for name, n in SOURCES)
    file = tmp_path / "fleet.toml"
    file.write_text(f'name = "f"\ntable = "/t/{{cluster}}"\nmembership = {{ {membership} }}\n{sources}')
    agent_checks.run_checks(FleetSettings.load(file, agent="a"))
    assert [one.place for one in asked if one.subject == "name"] == [place]
