"""Topics that a person gives to members: they alone read them, and all loads stay balanced."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import Member, OverrideError, Topic, plan
from assignors.planner.pinned_topics import checked_overrides, present_overrides


def group(topics: int, members: int, random: Random) -> tuple[list[Topic], list[Member]]:
    """Topics of different sizes, and members that all subscribe to them."""
    asked = [Topic(f"t{n}", random.randint(1, 6)) for n in range(topics)]
    return asked, [Member(f"id-{n}", frozenset(t.name for t in asked), instance=f"host-{n}") for n in range(members)]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.randoms(use_true_random=False), st.data())
def test_only_the_named_members_read_a_topic(topics: int, members: int, random: Random, data: st.DataObject) -> None:
    """Each partition has one owner, and those of a pinned topic belong to its members, by identity or member id."""
    asked, people = group(topics, members, random)
    names = st.sampled_from([name for one in people for name in (one.id, one.identity)])
    overrides = data.draw(
        st.dictionaries(st.sampled_from([t.name for t in asked]), names | st.lists(names, min_size=1, unique=True))
    )
    made = plan(asked, people, overrides=overrides, strategy=data.draw(st.sampled_from(["hrw", "shuffled"])))
    owners = {pair: member for member, mine in made.partitions.items() for pair in mine}
    assert len(owners) == sum(t.partitions for t in asked)
    by_id = {one.id: one.identity for one in people}
    for (topic, _), owner in owners.items():
        given_to = checked_overrides(overrides).get(topic)
        assert given_to is None or owner in given_to or by_id[owner] in given_to


def test_the_other_topics_make_room() -> None:
    """Pinned partitions count in the loads, so the member that has them gets fewer of the others."""
    asked = [Topic(name, 6) for name in ("a", "b", "c")]
    people = [Member(f"m{n}", frozenset("abc")) for n in range(3)]
    made = plan(asked, people, overrides={"b": "m1"}, epsilon=0)
    assert made.partitions["m1"] == [("b", n) for n in range(6)]
    assert made.loads == {"m0": 6, "m1": 6, "m2": 6}


def test_without_overrides_the_plan_is_the_same() -> None:
    """None and an empty mapping change nothing."""
    asked, people = group(8, 4, Random(1))
    assert plan(asked, people, overrides={}).partitions == plan(asked, people).partitions


def test_the_owner_of_a_pinned_topic_waits_for_the_one_before() -> None:
    """A cooperative round must not assign what another member still reads (KIP-429)."""
    asked = [Topic("a", 2)]
    people = [Member("m0", frozenset("a"), owned=frozenset({("a", 0), ("a", 1)})), Member("m1", frozenset("a"))]
    made = plan(asked, people, overrides={"a": "m1"})
    assert made.partitions["m1"] == [("a", 0), ("a", 1)] == made.withheld["m1"]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"a": "m9"}, "override for topic 'a': no member 'm9'; members are m0, m1"),
        ({"a": ["m0", "m9"]}, "no member 'm9'"),
        ({"b": "m1"}, "override for topic 'b': member 'm1' does not subscribe to it"),
        ({"a": []}, "need one member or more"),
        ({"a": ["m0", "m0"]}, "each once"),
        ({"a": 3}, "override for topic 'a': 3"),
        ({"a": ""}, "need one member or more"),
        (["a"], "need a mapping"),
    ],
)
def test_an_override_that_cannot_apply_is_refused(overrides: Any, said: str) -> None:
    """In one sentence with the topic and the member."""
    people = [Member("m0", frozenset("ab")), Member("m1", frozenset("a"))]
    with pytest.raises(OverrideError, match=said):
        plan([Topic("a", 2), Topic("b", 2)], people, overrides=overrides)


def test_names_that_are_absent_are_told_apart() -> None:
    """The leader of a live group follows what it can."""
    people = [Member("m0", frozenset("a")), Member("m1", frozenset("b"), instance="host")]
    present, absent = present_overrides({"a": ("m0", "host"), "b": ("host",), "c": ("m0",)}, people)
    assert present == {"a": ("m0",), "b": ("host",)}
    assert absent == {"a": ("host",), "c": ("m0",)}
