"""The text of `azimuth fleet status --explain`."""

import pytest

from assignors.fleet import Agent, FleetTopic, FleetWorkers, Membership, View, decide, explain
from spark_sink.cli import fleet
from spark_sink.fleet.fleet_lag import TopicFigures
from spark_sink.fleet.fleet_status import FleetStatus

TOPIC = FleetTopic("c", "id-1", "orders", "home")


@pytest.mark.parametrize(("agents", "more"), [("a", ""), ("abc", ""), ("abcde", " and 2 more")])
def test_a_late_topic_names_its_readers(agents: str, more: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table may refuse the rows of a topic: only its agents' logs have the reason."""
    decision = decide(View(tuple(Agent(one) for one in agents), 1), [TOPIC], FleetWorkers(default=len(agents)))
    readers = list(decision.workers[TOPIC.identity])
    figures = {TOPIC.label: TopicFigures(lag=7, lag_s=3.0, rate=0.0)}
    membership = Membership(view=decision.view, beats={})
    fleet._print(FleetStatus(membership=membership, decision=decision, lines=(), problems=(), figures=figures))
    [late] = [line for line in capsys.readouterr().out.splitlines() if "home/orders: 7 records" in line]
    assert late.endswith(f", read by {', '.join(readers[:3])}{more}")


@pytest.mark.parametrize(
    ("agents", "workers", "says"),
    [
        ("a", 1, "when a dies, no agent is left to read the topic"),
        ("ab", 2, "when a dies, the other readers divide its partitions"),
        ("abcd", 3, "takes over"),
        ("abc", 1, "3 c: in line: the topic has its 1 reader\n"),
        ("abc", 2, "in line: the topic has its 2 readers\n"),
    ],
)
def test_the_heirs_of_a_reader(agents: str, workers: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where all agents read a topic, "no agent takes over" looked like partitions without a reader."""
    policy = FleetWorkers(default=workers)
    decision = decide(View(tuple(Agent(one) for one in agents), 1), [TOPIC], policy)
    lines = [explain(decision, TOPIC.identity, policy)]
    fleet._print(
        FleetStatus(membership=Membership(view=decision.view, beats={}), decision=decision, lines=lines, problems=())
    )
    assert says in capsys.readouterr().out
