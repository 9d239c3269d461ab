"""4 agents, 300 topics on two clusters, one killed: time until its topics flow again, and the pauses of others."""

import statistics
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.lake.holes_and_doubles import verify
from tests.benchmarks.fleet_report import save
from tests.integration.assignors.fleet.conftest import redis_server
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    arrivals,
    delete_topics,
    make_topics,
    wait_until,
)
from tests.redis_server import RedisServer

pytestmark = pytest.mark.benchmark

__all__ = ["redis_server"]  # a fixture

AGENTS = ("agent-1", "agent-2", "agent-3", "agent-4")
HOME, AWAY = 200, 100
INTERVAL_S, SESSION_S, FLUSH_S, LANES = 0.5, 6, 0.5, 2
AFTER_S = 20.0
# Newly started brokers compile their code, which takes as much of two cores as the records do.
WARM_S = 20.0


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A second cluster, of one broker."""
    with Cluster.up(tmp_path_factory.mktemp("away") / "cluster", racks=["az-a"], tied=True) as started:
        yield started


def config(name: str, root: Path, home: Cluster, away: Cluster, membership: str) -> str:
    """The fleet's file."""
    return f"""
name = "{name}"
table = "{root}/lake/{{cluster}}"
session_s = {SESSION_S}
flush_s = {FLUSH_S}
lanes = {LANES}
discover_s = 5
[membership]
{membership}
[sources.home]
bootstrap_servers = "{home.bootstrap_servers}"
pattern = "{name}[.].*"
[sources.away]
bootstrap_servers = "{away.bootstrap_servers}"
pattern = "{name}[.].*"
"""


def flowing(fleet: FleetProcesses, root: Path, topics: int) -> bool:
    """Whether all topics are divided among the agents, and records of every topic have arrived."""
    mine = [fleet.status(agent).get("topics", []) for agent in AGENTS]
    if sum(map(len, mine)) != topics or not all(mine):
        return False
    tables = [root / "lake" / name for name in ("home", "away")]
    if not all((table / "_delta_log").exists() for table in tables):
        return False
    return sum(len(arrivals(table)) for table in tables) == topics


def gaps(times: list[float], begin: float, end: float) -> float:
    """The longest time without a new record within a window."""
    inside = [at for at in times if begin - 2 * FLUSH_S <= at <= end]
    return max((b - a for a, b in zip([begin, *inside], [*inside, end], strict=True)), default=end - begin)


def measure(root: Path, killed: float, dead: set[str], victim: str) -> dict[str, Any]:
    """Takeover of the dead agent's topics and gaps of the others', from the logs of the tables."""
    takeover, others = {}, {}
    for source in ("home", "away"):
        for topic, times in arrivals(root / "lake" / source).items():
            label = f"{source}/{topic}"
            if label in dead:
                takeover[label] = (
                    min((at for at, agent, _ in times if agent != victim and at > killed), default=0) - killed
                )
            else:
                others[label] = gaps([at for at, _, _ in times], killed, killed + AFTER_S)
    return {
        "topics_of_the_dead": len(takeover),
        "takeover_s": {"median": statistics.median(takeover.values()), "most": max(takeover.values())},
        "never_taken_over": sum(seconds < 0 for seconds in takeover.values()),
        "others_gap_s": {"median": statistics.median(others.values()), "most": max(others.values())},
        "others_above_2_s": sum(gap > 2 for gap in others.values()),
    }


def check(root: Path, name: str) -> dict[str, int]:
    """Doubles and holes of both tables."""
    reports = [verify(str(root / "lake" / source), name) for source in ("home", "away")]
    return {
        "rows": sum(one.rows for one in reports),
        "duplicates": sum(one.duplicates for one in reports),
        "missing": sum(one.missing for one in reports),
    }


@pytest.mark.parametrize("kind", ["kafka", "redis"])
def test_topics_of_a_killed_agent_flow_again(
    kind: str, cluster: Cluster, away: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """<= 15 s with a session of 6 s; others pause <= 2 s; with Redis, Redis itself is killed for 20 s too."""
    name = f"fleet-{uuid.uuid4().hex[:6]}"
    server: RedisServer | None = request.getfixturevalue("redis_server") if kind == "redis" else None
    membership = f'kind = "redis"\nurl = "redis://127.0.0.1:{server.port}/0"' if server else 'kind = "kafka"'
    topics = {
        cluster.bootstrap_servers: [f"{name}.home-{n}" for n in range(HOME)],
        away.bootstrap_servers: [f"{name}.away-{n}" for n in range(AWAY)],
    }
    for servers, names in topics.items():
        make_topics(servers, names)
    figures: dict[str, Any] = {
        "what": f"{HOME} + {AWAY} topics of 1 partition on a cluster of 3 brokers and one of 1, 4 agents, workers 1, "
        f"a record for each topic every {INTERVAL_S} s, session {SESSION_S} s, flush {FLUSH_S} s, {LANES} lanes, "
        f"{WARM_S} s to warm up; "
        "times are of commits in the tables",
        "bars": {"takeover_s": 15, "others_gap_s": 2},
    }
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster, away, membership)) as fleet:
        fleet.start(*AGENTS)
        with Feed(topics, INTERVAL_S) as feed:
            figures["flowing_after_s"] = wait_until(lambda: flowing(fleet, tmp_path, HOME + AWAY), 120, "flowing")
            warm = time.monotonic() + WARM_S
            wait_until(lambda: time.monotonic() > warm, WARM_S + 5, "warm")
            if server is not None:
                server.kill()
                gone = time.time()
                wait_until(lambda: time.time() > gone + 20, 30, "20 s without Redis")
                server.start()
                back = time.time()
                wait_until(
                    lambda: all(fleet.status(agent).get("standing") == "member" for agent in AGENTS),
                    20,
                    "members again",
                )
                figures["redis_killed_for_20_s"] = {
                    "longest_gap_of_any_topic_s": max(
                        gaps([at for at, _, _ in times], gone, back)
                        for source in ("home", "away")
                        for times in arrivals(tmp_path / "lake" / source).values()
                    ),
                    "members_again_s": time.time() - back,
                }
            victim = AGENTS[1]
            dead = set(fleet.status(victim)["topics"])
            killed = fleet.kill(victim)
            wait_until(lambda: time.time() > killed + AFTER_S, AFTER_S + 5, "after the kill")
        figures |= {"sent": feed.sent}
        wait_until(lambda: check(tmp_path, name)["rows"] >= feed.sent, 30, "all records in the tables")
        figures["consumers_of_an_agent"] = fleet.status(AGENTS[0])["consumers"]
        figures["exit_codes"] = fleet.stop()
    figures |= measure(tmp_path, killed, dead, victim)
    figures |= check(tmp_path, name)
    save(f"takeover_{kind}", figures)
    for servers, names in topics.items():
        delete_topics(servers, names)
    assert figures["duplicates"] == figures["missing"] == 0


def test_agents_that_believe_in_different_fleets_for_30_s_write_every_record_once(
    cluster: Cluster, away: Cluster, tmp_path: Path
) -> None:
    """Each of two agents sees only itself and reads all topics of both clusters: 0 duplicates, 0 holes."""
    name = f"fleet-{uuid.uuid4().hex[:6]}"
    topics = {
        cluster.bootstrap_servers: [f"{name}.home-{n}" for n in range(30)],
        away.bootstrap_servers: [f"{name}.away-{n}" for n in range(10)],
    }
    for servers, names in topics.items():
        make_topics(servers, names, partitions=2)
    with FleetProcesses(tmp_path, "") as fleet:
        for agent in AGENTS[:2]:
            file = tmp_path / f"{agent}.toml"
            alone = f'kind = "static"\nagents = [{{ id = "{agent}" }}]'
            file.write_text(config(name, tmp_path, cluster, away, alone))
            fleet.start(agent, config=file)
        with Feed(topics, 0.1) as feed:
            wait_until(lambda: all(fleet.status(agent).get("rows") for agent in AGENTS[:2]), 60, "both write")
            began = time.monotonic()
            wait_until(lambda: time.monotonic() > began + 30, 40, "30 s of it")
            statuses = [fleet.status(agent) for agent in AGENTS[:2]]
        wait_until(lambda: check(tmp_path, name)["rows"] >= feed.sent, 60, "all records in the tables")
        codes = fleet.stop()
    figures = check(tmp_path, name)
    save(
        "different_fleets",
        {
            "what": "2 agents, each alone in its own view, 40 topics of 2 partitions on two clusters, 30 s",
            "topics_each_claims": [len(one["topics"]) for one in statuses],
            "rows_each_wrote": [one["rows"] for one in statuses],
            "sent": feed.sent,
            "exit_codes": codes,
            **figures,
        },
    )
    for servers, names in topics.items():
        delete_topics(servers, names)
    assert figures == {"rows": feed.sent, "duplicates": 0, "missing": 0}
