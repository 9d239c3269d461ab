"""The faults that `azimuth agent --check` finds: one sentence each, with the place and the way out, and exit code 2."""

from pathlib import Path

import pytest

from assignors.errors import FleetError
from assignors.fleet import Agent, Membership, View
from spark_sink.cli import main
from spark_sink.fleet import agent_checks
from tests.unit.spark_sink.checks.fault_places import Places

pytestmark = pytest.mark.usefixtures("patient", "alone")

FILE = """
name = "flights"
table = "{tmp}/lake/{{topic}}"
membership = {{ kind = "static", agents = [{{ id = "a" }}] }}
[sources.home]
bootstrap_servers = "{servers}"
topics = ["flights"]
"""


class OneMember:
    """A membership with one live agent, or without a server."""

    def __init__(self, agent: str | None) -> None:
        self._agent = agent

    def observe(self) -> Membership:
        """The live agents."""
        if self._agent is None:
            raise FleetError("the server does not answer")
        return Membership(view=View(members=(Agent(self._agent),)))


@pytest.mark.parametrize(
    ("before", "after", "living", "says"),
    [
        ("{servers}", "127.0.0.1:1", "b", "fault home brokers 127.0.0.1:1: "),
        ('"flights"]', '"flihgts"]', "b", "fault home topics topic flihgts on {servers}: there is no such topic"),
        ("{tmp}/lake/{{topic}}", "/proc/{{topic}}", "b", "fault home table /proc/{{topic}}: files cannot be written"),
        ("[sources", 'status_file = "/proc/s.json"\n[sources', "b", "fault status /proc: files cannot be written"),
        ("[sources", 'status_file = "/tmp"\n[sources', "b", "fault status /tmp: is a folder; name a file in it"),
        (
            "[sources",
            'workers = {{ file = "none.json" }}\n[sources',
            "b",
            "none.json: there is no such file of overrides; write {{}} into it",
        ),
        (
            "[sources",
            'workers = {{ file = "overrides.json" }}\n[sources',
            "b",
            "overrides.json: 'hom/flights': there is no source 'hom'; did you mean 'home/flights'?",
        ),
        (
            "[sources",
            'workers = {{ topic = "azimuth.workers" }}\n[sources',
            "b",
            "azimuth.workers on {servers}: there is no such topic; start `azimuth autoscale --apply`, which creates it",
        ),
        ("topics", "topcis", "b", "sources.home.topcis: unknown setting; did you mean 'topics'?"),
        ('topics = ["flights"]', 'pattern = "("', "b", "source 'home': pattern '(' is not a regular expression"),
        ("name =", "patern = 1\nname =", "b", "patern: unknown setting"),
        (
            'kind = "static", agents = [{{ id = "a" }}]',
            'kind = "redis", url = "redis://x"',
            "a",
            "fault name agent 'a'",
        ),
        (
            'kind = "static", agents = [{{ id = "a" }}]',
            'kind = "redis", url = "redis://x"',
            None,
            "fault name the server",
        ),
    ],
    ids=[
        "port",
        "topic",
        "table",
        "status file",
        "status folder",
        "overrides",
        "source of an override",
        "workers topic",
        "key",
        "pattern",
        "key of no table",
        "name taken",
        "membership away",
    ],
)
def test_faults_of_a_fleet_are_found_before_its_start(  # noqa: PLR0913, PLR0917 -- a row of the table, and fixtures
    places: Places,
    before: str,
    after: str,
    living: str | None,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """One file serves many agents, so one fault stops all of them."""
    monkeypatch.setattr(agent_checks, "members", lambda _: OneMember(living))
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "a")  # the command sets it; the end of the test restores it
    assert before in FILE
    file = tmp_path / "fleet.toml"
    file.write_text(FILE.replace(before, after).format(servers=places.servers, tmp=places.tmp))
    (tmp_path / "overrides.json").write_text('{"hom/flights": 2}')
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--check", "--config", str(file), "--agent", "a"])
    said = capsys.readouterr()
    found = [line for line in said.out.splitlines() if line.startswith("fault")] or [said.err]
    assert ended.value.code == 2
    assert says.format(servers=places.servers) in " ".join(found[0].split())
    assert len(found) == 1, said


def test_the_port_of_the_pages_of_a_fleet_is_checked(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An agent that cannot serve its probes does not start."""
    monkeypatch.setattr(agent_checks, "members", lambda _: OneMember("b"))
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "a")  # the command sets it; the end of the test restores it
    (tmp_path / "fleet.toml").write_text(FILE.format(servers=places.servers, tmp=places.tmp))
    with pytest.raises(SystemExit) as ended:
        main(["agent", "--check", "--config", str(tmp_path / "fleet.toml"), "--http", f":{places.port}"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok ")]
    assert ended.value.code == 2
    assert " ".join(line.split()) == f"fault port --http {places.port}: Address already in use; name another"


@pytest.mark.parametrize("command", ["agent", "autoscale"])
@pytest.mark.parametrize("flag", ["--http-token", "--http-certificate", "--http-key"])
def test_options_of_pages_that_are_not_served_are_refused(
    command: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They had no effect without a word, and the operator waited for pages."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--config", str(tmp_path / "any.toml"), flag, str(tmp_path / "file")])
    assert ended.value.code == 2
    sentence = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert f"Invalid value for {flag}: it has no effect without --http, the address of the pages" in sentence
