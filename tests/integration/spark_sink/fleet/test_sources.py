"""Sources that change under agents: recreated topics, two sources of one cluster, an unreachable cluster."""

import time
from itertools import pairwise
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
    make_again,
    make_topics,
    rows,
    send,
    wait_until,
)

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_topics_made_anew_while_agents_run_are_read_from_their_beginning(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """None of their records is doubled, missing, or under the old name, and the other topic continues.

    One is absent for a while, the others are recreated at once, so that no agent need see a time without them. They get
    more records than they had.
    """
    anew = [f"{name}.recreated-{n}" for n in range(4)]
    topics = [*anew, f"{name}.stays"]
    make_topics(cluster.bootstrap_servers, topics)
    table = tmp_path / "lake" / "home"
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster)) as fleet:
        fleet.start("a", "b")
        send(cluster.bootstrap_servers, dict.fromkeys(topics, 10))
        wait_until(lambda: table.exists() and rows([table]) == 50, 60, "all arrived")
        delete_topics(cluster.bootstrap_servers, anew[:1])
        wait_until(
            lambda: not any(f"home/{anew[0]}" in fleet.status(agent).get("topics", ()) for agent in "ab"), 30, "gone"
        )
        delete_topics(cluster.bootstrap_servers, anew[1:])
        make_again(cluster.bootstrap_servers, anew)
        send(cluster.bootstrap_servers, {**dict.fromkeys(anew, 40), topics[-1]: 5})
        wait_until(lambda: rows([table]) >= 215, 120, "the new topics' records")
        assert fleet.stop() == {"a": 0, "b": 0}
    report = verify(str(table), name)
    assert (report.rows, report.duplicates, report.missing) == (215, 0, 0)
    found = {one.topic: one.rows for one in report.findings}
    assert found.pop(topics[-1]) == 15
    assert sorted(found.values()) == [10] * 4 + [40] * 4
    assert all(found[topic] == 10 for topic in anew)
    delete_topics(cluster.bootstrap_servers, topics)


@pytest.mark.slow
def test_two_sources_of_one_cluster_write_each_record_into_one_table(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """They share consumer groups; the topic that both name is read for the first, and one sentence says so."""
    topics = [f"{name}.{n}" for n in ("a1", "a2", "b1", "b2")]
    make_topics(cluster.bootstrap_servers, topics, partitions=2)
    first = config(name, tmp_path, cluster).replace(f"{name}[.].*", f"{name}[.]a.*")
    twin = f"""
[sources.twin]
bootstrap_servers = "{cluster.bootstrap_servers}"
pattern = "{name}[.](a1|b.*)"
"""
    tables = {source: tmp_path / "lake" / source for source in ("home", "twin")}
    with FleetProcesses(tmp_path, first + twin) as fleet:
        fleet.start("a", "b")
        with Feed({cluster.bootstrap_servers: topics}, 0.1) as feed:
            wait_until(
                lambda: (
                    all(table.exists() for table in tables.values())
                    and all(
                        any("are one cluster" in p for p in fleet.status(agent).get("problems", ())) for agent in "ab"
                    )
                ),
                60,
                "both write",
            )
            until = time.monotonic() + 3
            wait_until(lambda: time.monotonic() > until, 10, "a while")
        wait_until(lambda: rows(list(tables.values())) >= feed.sent, 30, "all arrived")
        assert fleet.stop() == {"a": 0, "b": 0}
    for source, expected in (("home", topics[:2]), ("twin", topics[2:])):
        report = verify(str(tables[source]), name)
        assert (report.duplicates, report.missing) == (0, 0)
        assert {one.topic for one in report.findings} == set(expected)
    delete_topics(cluster.bootstrap_servers, topics)


@pytest.mark.slow
def test_a_cluster_that_goes_away_and_comes_back_holds_up_no_other(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Its topics wait and lose nothing, the agent reports it, and the other cluster's records do not pause."""
    with Cluster.up(tmp_path / "away", racks=["az-a"], tied=True) as away:
        topics = [f"{name}.t{n}" for n in range(4)]
        for servers in (cluster.bootstrap_servers, away.bootstrap_servers):
            make_topics(servers, topics)
        more = f"""
[sources.away]
bootstrap_servers = "{away.bootstrap_servers}"
pattern = "{name}[.].*"
"""
        tables = {source: tmp_path / "lake" / source for source in ("home", "away")}
        with FleetProcesses(tmp_path, config(name, tmp_path, cluster) + more) as fleet:
            fleet.start("a")
            send(away.bootstrap_servers, dict.fromkeys(topics, 10))
            with Feed({cluster.bootstrap_servers: topics}, 0.2) as feed:
                wait_until(lambda: all(len(arrivals(t)) == 4 for t in tables.values() if t.exists()), 60, "both")
                wait_until(lambda: tables["away"].exists() and rows([tables["away"]]) == 40, 60, "away's records")
                away.kill(1)
                gone = time.time()
                wait_until(lambda: any("'away'" in p for p in fleet.status("a")["problems"]), 40, "said")
                wait_until(lambda: time.time() > gone + 15, 20, "a while without it")
                back = time.time()
                away.start(1)
                send(away.bootstrap_servers, dict.fromkeys(topics, 5))
                wait_until(lambda: rows([tables["away"]]) == 60, 60, "its new records")
                wait_until(lambda: not fleet.status("a")["problems"], 30, "well again")
            wait_until(lambda: rows([tables["home"]]) >= feed.sent, 30, "all arrived")
            assert fleet.stop() == {"a": 0}
        times = sorted({at for found in arrivals(tables["home"]).values() for at, _, _ in found if gone <= at <= back})
        assert max(b - a for a, b in pairwise(times)) < 3
        assert "'away'" in fleet.log("a")
        for source, count in (("home", feed.sent), ("away", 60)):
            report = verify(str(tables[source]), name)
            assert (report.rows, report.duplicates, report.missing) == (count, 0, 0)
    delete_topics(cluster.bootstrap_servers, topics)
