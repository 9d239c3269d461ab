"""A rolling restart of a fleet of real processes: few moves, short gaps, a quick end."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

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

CHART = Path(__file__).parents[4] / "deploy" / "helm" / "azimuth"
LONGEST_END_S = 10.0
LONGEST_GAP_S = 3.0
MOST_MOVES = 2
HAND_OVER_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet to restart.

    Attributes:
        agents: their number.
        topics: their number.
        min_ready_s: how long an agent is ready before the next one ends, seconds.
        file: makes the fleet's file of its name, folder and cluster.
    """

    agents: int
    topics: int
    min_ready_s: float
    file: Callable[[str, Path, Cluster], str]


def of_chart(name: str, root: Path, cluster: Cluster) -> str:
    """The fleet's file of the chart's least example, with the names and addresses of this test and nothing else."""
    values = yaml.safe_load((CHART / "examples" / "small.yaml").read_text(encoding="utf-8"))
    own = {
        "name": f'"{name}"',
        "table": f'"{root}/lake/{{cluster}}"',
        "bootstrap_servers": f'"{cluster.bootstrap_servers}"',
        "pattern": f'"{name}[.].*"',
    }
    lines = values["fleet"]["file"].splitlines()
    keys = [line.partition(" = ")[0] for line in lines]
    assert own.keys() <= set(keys)
    return "\n".join(f"{key} = {own[key]}" if key in own else line for key, line in zip(keys, lines, strict=True))


def min_ready_s() -> float:
    """The chart's pause between two agents."""
    return float(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["agents"]["minReadySeconds"])


FLEETS = {
    "quick settings": Fleet(agents=3, topics=40, min_ready_s=0.0, file=config),
    "settings of the chart": Fleet(agents=4, topics=300, min_ready_s=min_ready_s(), file=of_chart),
}


def turns(commits: Sequence[tuple[float, str, int]]) -> list[str]:
    """The agents that wrote a topic, one after another; while it is handed over both write, each record once."""
    last: dict[str, float] = {}
    found = []
    for at_s, agent, _ in commits:
        if at_s - last.get(agent, 0.0) > HAND_OVER_S:
            found.append(agent)
        last[agent] = at_s
    return found


@pytest.mark.parametrize("kind", FLEETS)
def test_a_rolling_restart_moves_each_topic_at_most_twice(
    cluster: Cluster, tmp_path: Path, name: str, kind: str
) -> None:
    """Away from its agent and back; the others keep reading it meanwhile, and every record is written once."""
    of = FLEETS[kind]
    topics = [f"{name}.{number:03}" for number in range(of.topics)]
    agents = [f"azimuth-{number}" for number in range(of.agents)]
    make_topics(cluster.bootstrap_servers, topics)
    table = tmp_path / "lake" / "home"
    ends: list[float] = []
    with FleetProcesses(tmp_path, of.file(name, tmp_path, cluster)) as fleet:
        fleet.start(*agents)

        def all_ready() -> bool:
            """All agents have their topics, and no topic of another."""
            found = [fleet.status(agent) for agent in agents]
            mine = [len(one["topics"]) for one in found if one and not one["unready"] and one["standing"] == "member"]
            views = {one["view"]["version"] for one in found if one and one["view"]}
            return len(mine) == of.agents and sum(mine) == of.topics and len(views) == 1

        def ready(agent: str) -> bool:
            """What a probe of the agent sees."""
            found = fleet.status(agent)
            return bool(found) and not found["unready"]

        with Feed({cluster.bootstrap_servers: topics}, 0.25) as feed:
            wait_until(all_ready, 90, "the fleet began", lambda: fleet.log(agents[0])[-2000:])
            wait_until(lambda: table.exists() and len(arrivals(table)) == of.topics, 60, "every topic is written")
            time_began = time.time()
            for agent in reversed(agents):  # as a StatefulSet does
                code, seconds = fleet.end(agent)
                assert code == 0, fleet.log(agent)[-2000:]
                ends.append(seconds)
                (fleet.root / f"{agent}.json").unlink()
                fleet.start(agent)
                back = _lasting(partial(ready, agent), of.min_ready_s) if of.min_ready_s else all_ready
                wait_until(back, 60, f"{agent} is back", partial(fleet.log, agent))
            wait_until(all_ready, 60, "all are back", lambda: fleet.log(agents[0])[-2000:])
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
        f"{of.agents} agents, {of.topics} topics: ends of {', '.join(f'{one:.1f}' for one in ends)} s, "
        f"moves {sum(moves.values())}, at most {max(moves.values())} of a topic, "
        f"longest gap {gaps[worst]:.2f} s, median {sorted(gaps.values())[of.topics // 2]:.2f} s\n"
    )
    assert max(ends) <= LONGEST_END_S
    assert max(moves.values()) <= MOST_MOVES
    assert gaps[worst] <= LONGEST_GAP_S, worst


def _lasting(ready: Callable[[], bool], seconds: float) -> Callable[[], bool]:
    """Return whether an agent has been ready for so long without a break, as `minReadySeconds` asks."""
    since: list[float] = []

    def fits() -> bool:
        if not ready():
            since.clear()
            return False
        since[1:] = []
        since.append(time.monotonic())
        return since[-1] - since[0] >= seconds

    return fits
