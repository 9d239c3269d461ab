"""A rolling restart of a fleet of real processes: few moves, short gaps, a quick end."""

import os
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from spark_sink.demo.cluster import Cluster
from tests.integration.spark_sink.fleet.fleet_process import (
    Feed,
    FleetProcesses,
    arrivals,
    config,
    make_topics,
    rows,
    wait_until,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]

AGENTS = int(os.environ.get("AZIMUTH_ROLLING_AGENTS", "3"))
TOPICS = int(os.environ.get("AZIMUTH_ROLLING_TOPICS", "40"))
LONGEST_END_S = 10.0
LONGEST_GAP_S = 3.0
MOST_MOVES = 2
HAND_OVER_S = 4.0


def turns(commits: Sequence[tuple[float, str, int]]) -> list[str]:
    """The agents that wrote a topic, one after another; while it is handed over both write, each record once."""
    last: dict[str, float] = {}
    found = []
    for at_s, agent, _ in commits:
        if at_s - last.get(agent, 0.0) > HAND_OVER_S:
            found.append(agent)
        last[agent] = at_s
    return found


def test_a_rolling_restart_moves_each_topic_at_most_twice(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Away from its agent and back; the others keep reading it meanwhile, and every record is written once."""
    topics = [f"{name}.{number:03}" for number in range(TOPICS)]
    agents = [f"azimuth-{number}" for number in range(AGENTS)]
    make_topics(cluster.bootstrap_servers, topics)
    table = tmp_path / "lake" / "home"
    ends: list[float] = []
    with FleetProcesses(tmp_path, config(name, tmp_path, cluster)) as fleet:
        fleet.start(*agents)

        def ready() -> bool:
            """All agents have their topics, and no topic of another."""
            found = [fleet.status(agent) for agent in agents]
            mine = [len(one["topics"]) for one in found if one and not one["unready"] and one["standing"] == "member"]
            views = {one["view"]["version"] for one in found if one and one["view"]}
            return len(mine) == AGENTS and sum(mine) == TOPICS and len(views) == 1

        with Feed({cluster.bootstrap_servers: topics}, 0.25) as feed:
            wait_until(ready, 90, "the fleet began", lambda: fleet.log(agents[0])[-2000:])
            wait_until(lambda: len(arrivals(table)) == TOPICS, 60, "every topic is written")
            time_began = time.time()
            for agent in reversed(agents):  # as a StatefulSet does
                code, seconds = fleet.end(agent)
                assert code == 0, fleet.log(agent)[-2000:]
                ends.append(seconds)
                (fleet.root / f"{agent}.json").unlink()
                fleet.start(agent)
                wait_until(ready, 60, f"{agent} is back", lambda: fleet.log(agent)[-2000:])  # noqa: B023 -- called at once
            time_ended = time.time()
        wait_until(lambda: rows([table]) >= feed.sent, 60, "all records are written")
        fleet.stop()
        assert rows([table]) == feed.sent
    gaps, moves = {}, {}
    for topic, found in arrivals(table).items():
        inside = [one for one in found if time_began - 1 <= one[0] <= time_ended + 1]
        gaps[topic] = max(later[0] - earlier[0] for earlier, later in pairwise(inside))
        moves[topic] = len(turns(inside)) - 1
    worst = max(gaps, key=lambda topic: gaps[topic])
    sys.stdout.write(
        f"{AGENTS} agents, {TOPICS} topics: ends of {', '.join(f'{one:.1f}' for one in ends)} s, "
        f"moves {sum(moves.values())}, at most {max(moves.values())} of a topic, "
        f"longest gap {gaps[worst]:.2f} s, median {sorted(gaps.values())[TOPICS // 2]:.2f} s\n"
    )
    assert max(ends) <= LONGEST_END_S
    assert max(moves.values()) <= MOST_MOVES
    assert gaps[worst] <= LONGEST_GAP_S, worst
