"""Shares of a topic's partitions among its seated agents, as people run them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    config,
    delete_topics,
    make_topics,
    rows,
    wait_until,
)

pytestmark = pytest.mark.integration

TWO_WORKERS = "[workers]\ndefault = 2"


def shares(fleet: FleetProcesses, agents: str, topic: str) -> list[list[int]]:
    """The partitions that each of these agents reads, of the agents that read the topic."""
    found = (fleet.status(agent).get("partitions", {}).get(f"home/{topic}", []) for agent in agents)
    return sorted((mine for mine in found if mine), key=lambda mine: (-len(mine), mine))


def complete(fleet: FleetProcesses, agents: str, topics: Mapping[str, int]) -> bool:
    """Whether each partition has exactly one reader, and each topic two agents."""
    found = {topic: shares(fleet, agents, topic) for topic in topics}
    return all(
        len(found[topic]) == 2 and sorted(number for mine in found[topic] for number in mine) == list(range(count))
        for topic, count in topics.items()
    )


def sizes(fleet: FleetProcesses, agents: str, topics: Mapping[str, int]) -> dict[str, list[int]]:
    """The sizes of the shares, by topic."""
    return {topic: [len(mine) for mine in shares(fleet, agents, topic)] for topic in topics}


@pytest.mark.slow
def test_two_workers_have_even_shares_of_each_topic_also_after_a_kill(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """Kafka's group gave both partitions of a topic to one of its two agents, and 12 partitions as 10 and 2."""
    topics = {f"{name}.large": 12, **{f"{name}.t{n}": 2 for n in range(6)}}
    for topic, count in topics.items():
        make_topics(cluster.bootstrap_servers, [topic], partitions=count)
    table = tmp_path / "lake" / "home"
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster) + TWO_WORKERS) as fleet:
        fleet.start("a", "b", "c")
        with Feed({cluster.bootstrap_servers: list(topics)}, 0.05) as feed:
            # Before the third has joined, the two others are complete as well.
            wait_until(
                lambda: all(fleet.status(agent).get("topics") for agent in "abc") and complete(fleet, "abc", topics),
                90,
                "read",
                lambda: str(sizes(fleet, "abc", topics)),
            )
            before = sizes(fleet, "abc", topics)
            fleet.kill("b")
            took_s = wait_until(lambda: complete(fleet, "ac", topics), 60, "taken over", lambda: fleet.log("a")[-999:])
            after = sizes(fleet, "ac", topics)
        wait_until(lambda: rows([table]) >= feed.sent, 60, "all arrived")
        assert fleet.stop() == {"a": 0, "c": 0}
    print(f"shares {before}, {took_s:.1f} s after the kill {after}")  # noqa: T201 - a figure
    for found in (*before.values(), *after.values()):
        assert max(found) - min(found) <= 1
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (feed.sent, 0, 0)
    delete_topics(cluster.bootstrap_servers, list(topics))


@pytest.mark.slow
def test_agents_change_from_group_to_seat_by_a_rolling_restart(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """While one agent still declares the group, all use it; every record arrives once, and shares end up even."""
    topics = {f"{name}.t{n}": 4 for n in range(3)}
    make_topics(cluster.bootstrap_servers, list(topics), partitions=4)
    table = tmp_path / "lake" / "home"
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster) + TWO_WORKERS) as fleet:
        group = {"AZIMUTH_FLEET_ASSIGNMENT": "group"}
        fleet.start("a", "b", more=group)
        with Feed({cluster.bootstrap_servers: list(topics)}, 0.05) as feed:
            wait_until(lambda: all(fleet.status(agent).get("standing") == "member" for agent in "ab"), 60, "both live")
            wait_until(lambda: rows([table]) > 0, 60, "records arrive")
            for agent in "ab":
                fleet.kill(agent)
                seen = rows([table])
                fleet.start(agent)
                wait_until(lambda seen=seen: rows([table]) > seen + 30, 60, "more arrive")  # type: ignore[misc]  # mypy infers no type for a default
            wait_until(lambda: complete(fleet, "ab", topics), 60, "even", lambda: str(sizes(fleet, "ab", topics)))
            assert set(map(tuple, sizes(fleet, "ab", topics).values())) == {(2, 2)}
        wait_until(lambda: rows([table]) >= feed.sent, 60, "all arrived")
        assert fleet.stop() == {"a": 0, "b": 0}
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (feed.sent, 0, 0)
    delete_topics(cluster.bootstrap_servers, list(topics))
