"""Agents of a fleet as people run them: takeover, fleets that disagree, and input that is wrong."""

import time
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    arrivals,
    config,
    delete_topics,
    make_topics,
    rows,
    send,
    wait_until,
)

pytestmark = pytest.mark.integration

TOPICS = 12


def test_topics_of_a_killed_agent_flow_again_and_a_told_one_leaves_cleanly(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """SIGKILL: the other takes over within the bar; SIGTERM: exit code 0; every record once."""
    topics = [f"{name}.t{n}" for n in range(TOPICS)]
    make_topics(cluster.bootstrap_servers, topics)
    table = tmp_path / "lake" / "home"
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster)) as fleet:
        fleet.start("a", "b")
        with Feed({cluster.bootstrap_servers: topics}, 0.3) as feed:
            wait_until(
                lambda: (
                    sum(len(fleet.status(agent).get("topics", [])) for agent in "ab") == TOPICS
                    and all(fleet.status(agent).get("rows") for agent in "ab")
                    and len(arrivals(table)) == TOPICS
                ),
                60,
                "both read",
            )
            dead = {label.removeprefix("home/") for label in fleet.status("b")["topics"]}
            killed = fleet.kill("b")

            def taken_over() -> bool:
                found = arrivals(table)
                return all(any(at > killed and agent == "a" for at, agent, _ in found[topic]) for topic in dead)

            assert wait_until(taken_over, 40, "taken over") < 30
        wait_until(lambda: rows([table]) >= feed.sent, 30, "all arrived")
        assert fleet.status("a")["consumers"] <= 2
        assert fleet.stop() == {"a": 0}
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (feed.sent, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)


@pytest.mark.slow
def test_two_agents_that_believe_in_different_fleets_write_every_record_once(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """Each sees only itself and reads everything: group protocol and compare-and-swap arbitrate."""
    topics = [f"{name}.t{n}" for n in range(TOPICS)]
    make_topics(cluster.bootstrap_servers, topics, partitions=2)
    table = tmp_path / "lake" / "home"
    with FleetProcesses(tmp_path, "") as fleet:
        for agent in "ab":
            alone = f'[membership]\nkind = "static"\nagents = [{{ id = "{agent}" }}]'
            file = tmp_path / f"{agent}.toml"
            file.write_text(config(name, tmp_path, cluster, alone))
            fleet.start(agent, config=file)
        with Feed({cluster.bootstrap_servers: topics}, 0.1) as feed:
            wait_until(lambda: all(fleet.status(agent).get("rows") for agent in "ab"), 60, "both write")
            until = time.monotonic() + 5
            wait_until(lambda: time.monotonic() > until, 10, "a while")
            assert all(len(fleet.status(agent)["topics"]) == TOPICS for agent in "ab")
        wait_until(lambda: rows([table]) >= feed.sent, 30, "all arrived")
        assert fleet.stop() == {"a": 0, "b": 0}
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (feed.sent, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)


@pytest.mark.slow
def test_what_is_wrong_is_said_and_disturbs_nothing_else(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """A cluster that is away, a topic in no cluster, a pattern without a match, a dead agent named by hand."""
    topics = [f"{name}.good", f"{name}.better"]
    make_topics(cluster.bootstrap_servers, topics)
    table = tmp_path / "lake" / "home"
    wrong = f"""
workers = {{ overrides = {{ "{name}.good" = ["nobody"], "{name}.none" = 2 }} }}
membership = {{ home = "home" }}
[sources.away]
bootstrap_servers = "127.0.0.1:1"
topics = ["x"]
[sources.empty]
bootstrap_servers = "{cluster.bootstrap_servers}"
topics = ["{name}-missing"]
pattern = "{name}-nothing.*"
"""
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster, wrong)) as fleet:
        fleet.start("a")
        send(cluster.bootstrap_servers, dict.fromkeys(topics, 10))
        wait_until(lambda: fleet.status("a").get("rows") == 20, 60, "both topics arrived")
        expected = ("'away': no broker", f"no topic '{name}-missing'", "matches no topic", "'nobody' does not live")

        def said() -> bool:
            problems = " ".join(fleet.status("a")["problems"])
            return all(one in problems for one in expected)

        wait_until(said, 30, "all problems told")
        assert all(one in fleet.log("a") for one in expected)
        send(cluster.bootstrap_servers, dict.fromkeys(topics, 3))
        wait_until(lambda: fleet.status("a").get("rows") == 26, 60, "more of both")
        assert fleet.stop() == {"a": 0}
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (26, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)
