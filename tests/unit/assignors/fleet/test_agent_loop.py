"""The loop of an agent, in a world of values."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from assignors.fleet import (
    Agent,
    AgentParts,
    ClusterWatch,
    FleetAgent,
    FleetTopic,
    FleetWorkers,
    Lane,
    Lanes,
    StaticMembers,
    declared_settings,
)
from assignors.fleet.topic_descriptions import Sighting
from tests.unit.assignors.fleet.model_fleet import ModelWatch


@dataclass
class Reading:
    """What was asked for."""

    lanes: list[Mapping[Lane, frozenset[FleetTopic]]] = field(default_factory=list)
    told: Mapping[str, Any] = field(default_factory=dict)

    def assign(self, lanes: Mapping[Lane, frozenset[FleetTopic]]) -> None:
        """Keep."""
        self.lanes.append(lanes)

    def problems(self) -> Sequence[str]:
        """None."""
        return ()

    def figures(self) -> Mapping[str, Any]:
        """What a test wants."""
        return self.told

    def close(self) -> None:
        """Nothing to end."""

    @property
    def labels(self) -> list[str]:
        """What is to be read now."""
        return sorted(topic.label for topics in self.lanes[-1].values() for topic in topics)


def agent(
    reading: Reading, *watches: ModelWatch, paused: Callable[[str], Collection[str] | None] = lambda _: ()
) -> FleetAgent:
    """The only agent of a fleet."""
    parts = AgentParts(
        agent=Agent("a"),
        members=StaticMembers(Agent("a"), (Agent("a"),)).start(),
        watches=cast("list[ClusterWatch]", list(watches)),
        ingestion=reading,
        workers=lambda _: FleetWorkers(),
        paused=paused,
    )
    return FleetAgent(parts)


def of(source: str, *names: str) -> Sighting:
    """Topics of one cluster, whatever the source is called."""
    return Sighting(cluster="c", topics=tuple(FleetTopic("c", f"id-{name}", name, source) for name in names))


def test_a_topic_of_two_sources_is_read_once_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """Two sources are the same cluster: all other topics continue, and the problem disappears with its cause."""
    reading, other = Reading(), ModelWatch(of("two", "x", "y"))
    made = agent(reading, ModelWatch(of("one", "x")), other)
    made.step()
    made.step()
    assert reading.labels == ["one/x", "two/y"]
    assert any("are one cluster" in problem for problem in made.status()["problems"])
    assert caplog.text.count("are one cluster") == 1
    other.sighting = of("two", "y")
    made.step()
    assert not made.status()["problems"]


def test_nothing_is_read_before_each_cluster_was_asked() -> None:
    """Or a topic of two sources would be read for the one that happens to answer first."""
    reading, slow = Reading(), ModelWatch(Sighting())
    made = agent(reading, slow, ModelWatch(of("two", "x")))
    made.step()
    assert not reading.lanes
    slow.sighting = Sighting(problems=("no broker answers",))
    made.step()
    assert reading.labels == ["two/x"]


def test_an_agent_that_differs_says_so_and_uses_the_lanes_of_the_others() -> None:
    """In a rolling restart its own number would put it into other groups than the agents it shares topics with."""
    one = Agent("a", settings=declared_settings({"lanes": 64, "seed": 0}))
    two = Agent("b", settings=declared_settings({"lanes": 1, "seed": 0}))
    reading = Reading()
    parts = AgentParts(
        agent=one,
        members=StaticMembers(one, (one, two)).start(),
        watches=cast("list[ClusterWatch]", [ModelWatch(of("s", *(f"t{n}" for n in range(9))))]),
        ingestion=reading,
        workers=lambda _: FleetWorkers(default=2),
        lanes=Lanes(count=64),
    )
    made = FleetAgent(parts)
    made.step()
    assert made.status()["problems"] == ["setting 'lanes' differs: 64 on a, 1 on b; all agents need the same file"]
    assert list(reading.lanes[-1]) == [Lane("s", 0)]


def test_what_starts_and_stops_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """The log names a few topics, and gives the number of the others."""
    watch = ModelWatch(of("s", *(f"t{n}" for n in range(9))))
    with caplog.at_level(logging.INFO):
        made = agent(Reading(), watch)
        made.step()
        watch.sighting = of("s", "t0", "u")
        made.step()
    assert "'a' starts 9 topics: s/t0, s/t1, s/t2, s/t3, s/t4, ..." in caplog.text
    assert "'a' starts 1 topic: s/u" in caplog.text
    assert "'a' stops 8 topics: s/t1, s/t2, s/t3, s/t4, s/t5, ..." in caplog.text


def test_an_agent_is_ready_while_it_does_its_work_and_says_why_where_not() -> None:
    """Not before the first decision, without any broker, while tables refuse, and at the end."""
    reading, one, two = Reading(), ModelWatch(Sighting()), ModelWatch(of("two", "x"))
    made = agent(reading, one, two)
    made.step()
    assert made.status()["unready"] == "its topics are not known yet"
    one.sighting = Sighting(problems=("one: no broker",), answers=False)
    made.step()
    assert made.status()["unready"] == ""
    two.sighting = replace(two.sighting, problems=("two: no broker",), answers=False)
    assert made.status()["unready"] == "one: no broker; two: no broker"
    one.sighting = of("one", "y")
    reading.told = {"works": False}
    assert made.status()["unready"] == "nothing comes into the tables"
    reading.told = {"alive": False}
    assert not made.status()["turns"], "what reads has ended: only a restart helps"
    reading.told = {}
    stop = threading.Event()
    stop.set()
    made.run(stop)
    assert made.status()["unready"] == "it ends"


def test_a_paused_topic_is_not_read_and_moves_no_other() -> None:
    """Only the reading stops: the placement stays, and the topic is read again as soon as it is resumed."""
    reading, pauses = Reading(), dict[str, Collection[str] | None](s={"y"}, r=())
    made = agent(reading, ModelWatch(of("s", "x", "y")), ModelWatch(of("r", "z")), paused=pauses.__getitem__)
    made.step()
    assert reading.labels == ["r/z", "s/x"]
    assert made.status()["paused"] == ["s/y"]
    assert made.owners()["s/y"] == ["a"]
    pauses["s"] = ()
    made.step()
    assert reading.labels == ["r/z", "s/x", "s/y"]


def test_nothing_of_a_source_is_read_while_its_pauses_are_unknown() -> None:
    """A restart must not read a paused topic; other sources do not wait."""
    reading, pauses = Reading(), dict[str, Collection[str] | None](s=None, r=())
    made = agent(reading, ModelWatch(of("s", "x")), ModelWatch(of("r", "z")), paused=pauses.__getitem__)
    made.step()
    assert reading.labels == ["r/z"]
