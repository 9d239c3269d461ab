"""Agents look at their clusters at different times, so for a while they compute with different lists of topics."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.fleet import FleetTopic
from assignors.fleet.topic_descriptions import Sighting
from tests.unit.assignors.fleet.model_fleet import ModelAgent, Server, readers

TOPICS = tuple(FleetTopic("c", f"id-{n}", f"t{n}", "s", 3) for n in range(12))
NAMES = ("a", "b", "c")
LOOK_S, GROWTH_S = 10.0, 14.0
STEPS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 11), min_size=1),  # the topics that exist from now on
        st.permutations(range(3)),  # the agents in the order of their looks
        st.lists(st.floats(0.0, LOOK_S / 3), min_size=3, max_size=3),  # seconds before each of these looks
        st.floats(0.0, 20.0),  # seconds until the next change, after the last look
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=100)
@given(steps=STEPS)
def test_a_topic_that_all_agents_have_listed_always_has_a_reader_whatever_other_topics_come_and_go(
    steps: list[tuple[set[int], list[int], list[float], float]],
) -> None:
    """One more topic moves others, as agents are bounded; and agents that list it later do not know that yet.

    After the last change each partition has exactly one reader again.
    """
    now = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now)
        server, listed = Server(), set(range(12))
        agents = [ModelAgent(name, server, seen_of(listed), growth_s=GROWTH_S) for name in NAMES]
        for one in agents * 2:
            one.step()
        known = [set(listed) for _ in agents]
        for exist, order, pauses, wait in steps:
            for number, pause in zip(order, pauses, strict=True):
                now += pause
                known[number] = set(exist)
                agents[number].watch.sighting = seen_of(exist)
                for one in agents:
                    one.step()
                assert all(readers_of(agents, set.intersection(*known)))
            now += wait
            for one in agents:
                one.step()
        now += GROWTH_S
        for one in agents:
            one.step()
        assert {len(who) for who in readers_of(agents, known[0])} == {1}


def seen_of(numbers: set[int]) -> Sighting:
    """What a cluster with these topics answers."""
    return Sighting(cluster="c", topics=tuple(TOPICS[n] for n in sorted(numbers)))


def readers_of(agents: list[ModelAgent], numbers: set[int]) -> list[list[str]]:
    """The readers of each partition of these topics."""
    names = {TOPICS[n].name for n in numbers}
    return [who for (name, _), who in readers(agents, TOPICS).items() if name in names]
