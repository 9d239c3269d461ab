"""`--check` against brokers that want a password and allow only what a rule allows."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_sink.cli import main
from spark_sink.demo.cluster import Cluster
from spark_sink.fleet.agent_process import members
from spark_sink.fleet.fleet_settings import FleetSettings
from spark_sink.options.source_options import SourceOptions
from spark_sink.source.group_membership import KafkaMembership
from tests.integration.spark_sink.guarded_cluster import CLOSED, OPEN, SEEN, client, guarded_cluster
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that allows only what a rule allows."""
    with guarded_cluster(tmp_path_factory.mktemp("guarded") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def faults(guarded: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Return the faults of `azimuth sink --check` with further arguments; a later one replaces an earlier one."""
    kafka = [word for pair in client().items() for word in ("--kafka", "=".join(pair))]
    where = ["--bootstrap-servers", guarded.bootstrap_servers, "--group", "checks", "--agent", "one"]
    where += ["--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint"), "--subscribe", OPEN]

    def check(*more: str) -> list[str]:
        with pytest.raises(SystemExit) as ended:
            main(["sink", "--check", *where, *kafka, *more])
        said = capsys.readouterr()
        assert "canary" not in said.out + said.err
        found = [line for line in said.out.splitlines() if line.startswith("fault")]
        assert ended.value.code == (2 if found else 0), said
        return found

    return check


def test_a_user_with_the_rights_of_an_agent_may_start(faults: Callable[..., list[str]]) -> None:
    """READ on topic and group is enough; a check that wants more would refuse a good configuration."""
    assert faults() == []


@pytest.mark.parametrize(
    ("more", "subject", "says"),
    [
        (("--kafka", "sasl.password=canary"), "brokers", "Authentication failed"),
        (("--subscribe", SEEN), "topics", f"topic {SEEN} on "),
        (("--subscribe", CLOSED), "topics", f"topic {CLOSED} on "),
        (("--group", "others"), "group", "group 'others' on "),
    ],
    ids=["password", "may describe", "may nothing", "group"],
)
def test_a_missing_right_is_one_sentence(
    faults: Callable[..., list[str]], more: tuple[str, ...], subject: str, says: str
) -> None:
    """To a client such a topic looks as if it did not exist, and such a group as if nothing came."""
    found = faults(*more)
    assert found[0].split()[:2] == ["fault", subject]
    assert says in found[0]


def test_the_name_of_a_live_agent_of_another_host_is_taken(guarded: Cluster, faults: Callable[..., list[str]]) -> None:
    """No lock is between two hosts; the group knows both."""
    kafka = {"bootstrap.servers": guarded.bootstrap_servers, "group.id": "checks", **client()}
    options = {f"kafka.{name}": value for name, value in kafka.items()}
    member = KafkaMembership(SourceOptions.parse({**options, "subscribe": OPEN, "agent": "one"}))
    with contextlib.ExitStack() as stack:
        stack.callback(member.leave)
        assert member.assignment(60).partitions
        (found,) = faults()
        assert found.split()[:2] == ["fault", "name"]
        assert "agent 'one' of group 'checks' is running already, on 127.0.0.1" in found
        assert faults("--agent", "two") == []


def test_the_id_of_a_live_agent_of_a_fleet_is_taken(
    guarded: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the start; a started agent would wait for the other one to leave."""
    monkeypatch.setenv("AZIMUTH_FLEET_AGENT", "one")
    lines = ['name = "checks"', f'table = "{tmp_path}/{{topic}}"', "[sources.home]"]
    lines += [f'bootstrap_servers = "{guarded.bootstrap_servers}"', f'topics = ["{OPEN}"]', "[sources.home.kafka]"]
    lines += [f'"{name}" = "{value}"' for name, value in client().items()]
    file = tmp_path / "fleet.toml"
    file.write_text("\n".join(lines))

    def lines_of_check() -> list[str]:
        with pytest.raises(SystemExit):
            main(["agent", "--check", "--config", str(file)])
        return capsys.readouterr().out.splitlines()

    assert [line for line in lines_of_check() if not line.startswith("ok ")] == []
    agent = members(FleetSettings.load(file)).start()
    try:
        wait_until(lambda: agent.state().view is not None)
        (found,) = [line for line in lines_of_check() if line.startswith("fault")]
        assert "agent 'one' of fleet 'checks' is running already" in found
    finally:
        agent.close()
