"""Topics that go to an agent that joins are kept for a short time, and no others."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.fleet import Agent, FleetTopic, View, decide
from assignors.fleet.hand_over import HandOver, await_successors

TOPICS = [FleetTopic("c", f"id-{number}", f"t{number}") for number in range(12)]
HOLD_S = 4.0
STEPS = st.lists(
    st.tuples(
        st.sets(st.sampled_from("bcd")),  # the other agents
        st.sets(st.integers(0, 11), min_size=1),  # the topics that exist
        st.floats(0.0, 6.0),  # seconds since the step before
    ),
    max_size=12,
)


@given(STEPS)
def test_a_topic_is_kept_only_after_a_join_and_for_a_limited_time(
    steps: list[tuple[set[str], set[int], float]],
) -> None:
    """Kept for longer, or after an agent has died, it would have more readers than it should."""
    made, now, joined_at, read = HandOver(HOLD_S), 0.0, -HOLD_S, frozenset[FleetTopic]()
    before: set[str] | None = None
    for version, (others, exist, seconds) in enumerate(steps, 1):
        now += seconds
        view = View(tuple(Agent(one) for one in sorted({"a", *others})), version)
        topics = [TOPICS[number] for number in sorted(exist)]
        mine = set(decide(view, topics).of("a"))
        if before is not None and others - before:
            joined_at = now
        found = frozenset(made.topics(view, mine, topics, now))
        assert mine <= found <= mine | read
        assert found <= set(topics)
        assert found == mine or now - joined_at < HOLD_S
        before, read = others, found


def test_a_topic_that_goes_to_a_new_agent_is_read_until_it_has_begun() -> None:
    """Else it has no reader while the new agent joins its groups."""
    made = HandOver(HOLD_S)
    alone, both = View((Agent("a"),), 1), View((Agent("a"), Agent("b")), 2)
    mine = set(decide(both, TOPICS).of("a"))
    assert set(made.topics(alone, TOPICS, TOPICS, 10.0)) == set(TOPICS)
    assert set(made.topics(both, mine, TOPICS, 11.0)) == set(TOPICS)
    assert set(made.topics(both, mine, TOPICS, 14.9)) == set(TOPICS)
    assert set(made.topics(both, mine, TOPICS, 15.0)) == mine


def test_a_topic_that_moves_because_of_weights_is_read_until_its_new_agent_has_begun() -> None:
    """The same agents divide the topics in another way: each needs the time to start that a new agent needs."""
    made, view = HandOver(HOLD_S), View((Agent("a"), Agent("b")), 1)
    made.topics(view, TOPICS[:6], TOPICS, 10.0)
    assert set(made.topics(view, TOPICS[3:9], TOPICS, 11.0, reweighed=True)) == set(TOPICS[:9])
    assert set(made.topics(view, TOPICS[3:9], TOPICS, 14.9)) == set(TOPICS[:9])
    assert set(made.topics(view, TOPICS[3:9], TOPICS, 15.0)) == set(TOPICS[3:9])


def test_an_agent_that_may_not_read_keeps_nothing() -> None:
    """It is removed by the others, who read its topics."""
    made = HandOver(HOLD_S)
    made.topics(View((Agent("a"),), 1), TOPICS, TOPICS, 10.0)
    made.drop()
    both = View((Agent("a"), Agent("b")), 2)
    assert set(made.topics(both, TOPICS[:3], TOPICS, 11.0)) == set(TOPICS[:3])


def test_a_share_that_shrinks_for_a_new_agent_is_kept_as_well() -> None:
    """Half of a topic's partitions go to the agent that joins, and it has not begun yet."""
    made = HandOver(HOLD_S)
    alone, both = View((Agent("a"),), 1), View((Agent("a"), Agent("b")), 2)
    whole, half = (replace(TOPICS[0], share=share) for share in ((0, 1, 2, 3), (1, 3)))
    assert made.topics(alone, [whole], TOPICS, 10.0) == [whole]
    assert made.topics(both, [half], TOPICS, 11.0) == [whole]
    assert made.topics(both, [half], TOPICS, 15.0) == [half]


def test_a_share_that_changes_for_added_partitions_is_kept_until_all_agents_have_looked() -> None:
    """Another agent sees the new partitions later, and until then it does not read those that go to it."""
    made, view = HandOver(HOLD_S, growth_s=14.0), View((Agent("a"), Agent("b")), 1)
    few, many = (replace(TOPICS[0], partitions=number) for number in (4, 6))
    before, after = replace(few, share=(0, 1)), replace(many, share=(0, 4, 5))
    assert made.topics(view, [before], [few], 10.0) == [before]
    both = replace(many, share=(0, 1, 4, 5))
    assert made.topics(view, [after], [many], 11.0) == [both]
    assert made.topics(view, [after], [many], 24.9) == [both]
    assert made.topics(view, [after], [many], 25.0) == [after]


def test_a_second_join_ends_no_hold_of_the_first() -> None:
    """Agents of a deployment join within a second of each other, and none of them has begun yet."""
    made = HandOver(HOLD_S)
    views = [View(tuple(Agent(one) for one in names), len(names)) for names in ("a", "ab", "abc")]
    whole, half, third = (replace(TOPICS[0], share=share) for share in (tuple(range(6)), (0, 1, 2), (0, 1)))
    assert made.topics(views[0], [whole], TOPICS, 10.0) == [whole]
    assert made.topics(views[1], [half], TOPICS, 11.0) == [whole]
    assert made.topics(views[2], [third], TOPICS, 11.5) == [whole]
    assert made.topics(views[2], [third], TOPICS, 15.5) == [third]


@pytest.mark.parametrize("sign", [True, False])
def test_an_agent_that_leaves_waits_for_a_sign_of_its_successors_for_a_limited_time(
    *, sign: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle topics give no sign, and the end of an agent must not take for ever."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "sleep", sleep)
    await_successors(lambda: int(sign and now > 1.0), 4.0)
    assert now == pytest.approx(2.1 if sign else 4.0, abs=0.11)
