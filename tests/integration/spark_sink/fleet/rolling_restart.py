"""A rolling restart of a fleet of real processes, and what can be read from the logs of its tables afterwards."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

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

CHART = Path(__file__).parents[4] / "deploy" / "helm" / "azimuth"
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


QUICK = Fleet(agents=3, topics=40, min_ready_s=0.0, file=config)
OF_CHART = Fleet(agents=4, topics=300, min_ready_s=min_ready_s(), file=of_chart)


def turns(commits: Sequence[tuple[float, str, int]]) -> list[str]:
    """The agents that wrote a topic, one after another; while it is handed over both write, each record once."""
    last: dict[str, float] = {}
    found = []
    for at_s, agent, _ in commits:
        if at_s - last.get(agent, 0.0) > HAND_OVER_S:
            found.append(agent)
        last[agent] = at_s
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """What a rolling restart cost.

    Attributes:
        ends_s: from the signal to the end of each agent.
        moves: how often each topic went to another agent.
        gaps_s: the longest time without a commit, by topic.
        sent: records that were acknowledged.
        written: rows of the table.
    """

    ends_s: Sequence[float]
    moves: dict[str, int]
    gaps_s: dict[str, float]
    sent: int
    written: int

    def __str__(self) -> str:
        return (
            f"{len(self.ends_s)} agents, {len(self.moves)} topics: ends of "
            f"{', '.join(f'{one:.1f}' for one in self.ends_s)} s, moves {sum(self.moves.values())}, at most "
            f"{max(self.moves.values())} of a topic, longest gap {max(self.gaps_s.values()):.2f} s, "
            f"median {median(self.gaps_s.values()):.2f} s"
        )


def restart(of: Fleet, cluster: Cluster, root: Path, name: str) -> Restarted:
    """Restart all agents of a fleet one after another, as a StatefulSet does, while records arrive."""
    topics = [f"{name}.{number:03}" for number in range(of.topics)]
    agents = [f"azimuth-{number}" for number in range(of.agents)]
    make_topics(cluster.bootstrap_servers, topics)
    table = root / "lake" / "home"
    ends: list[float] = []
    with FleetProcesses(root, of.file(name, root, cluster)) as fleet:
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
            began = time.time()
            for agent in reversed(agents):
                code, seconds = fleet.end(agent)
                assert code == 0, fleet.log(agent)[-2000:]
                ends.append(seconds)
                (fleet.root / f"{agent}.json").unlink()
                fleet.start(agent)
                back = _lasting(partial(ready, agent), of.min_ready_s) if of.min_ready_s else all_ready
                wait_until(back, 60, f"{agent} is back", partial(fleet.log, agent))
            wait_until(all_ready, 60, "all are back", lambda: fleet.log(agents[0])[-2000:])
            ended = time.time()
        wait_until(lambda: rows([table]) >= feed.sent, 60, "all records are written")
        fleet.stop()
    gaps, moves = {}, {}
    for topic, found in arrivals(table).items():
        inside = [one for one in found if began - 1 <= one[0] <= ended + 1]
        gaps[topic] = max(later[0] - earlier[0] for earlier, later in pairwise(inside))
        moves[topic] = len(turns(inside)) - 1
    return Restarted(ends_s=ends, moves=moves, gaps_s=gaps, sent=feed.sent, written=rows([table]))


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
