"""Claims as arrays, against the definition of a valid claim."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import AssignorError, Member, Topic, plan
from assignors.errors import GroupError, TopicError, WeightError
from assignors.planner.input_arrays import MOST_PLANNED, NO_OWNER, SEVERAL_CLAIMANTS, read_problem

BOTH = frozenset({"t", "u"})
TOPICS = [Topic("a", 3), Topic("b", 0), Topic("c", 2)]
pairs = st.tuples(st.sampled_from(["a", "b", "c", "gone"]), st.sampled_from([-1, 0, 1, 2, 3, 2**70, -(2**70)]))
claims = st.lists(st.tuples(st.frozensets(pairs, max_size=6), st.integers(-3, 2)), min_size=1, max_size=5)


@given(claims)
@settings(max_examples=200, deadline=None)
def test_claims_are_valid_by_their_definition(given_claims: list[tuple[frozenset[tuple[str, int]], int]]) -> None:
    """The newest generation owns where it is one member's; also with numbers that no partition has."""
    wanted = frozenset("abc")
    members = [Member(f"m{i}", wanted, owned=owned, generation=g) for i, (owned, g) in enumerate(given_claims)]
    problem = read_problem(TOPICS, members, 0)
    places = [(t.name, p) for t in problem.topics for p in range(t.partitions)]
    for at, pair in enumerate(places):
        by = [(max(g, -1), i) for i, (owned, g) in enumerate(given_claims) if pair in owned]
        newest = [i for g, i in by if g == max(by)[0]]
        assert problem.owner[at] == (newest[0] if len(newest) == 1 else NO_OWNER)
        assert problem.claimant[at] == (SEVERAL_CLAIMANTS if len(by) > 1 else by[0][1] if by else NO_OWNER)


@pytest.mark.parametrize("number", [float("nan"), None, "x", float("inf")])
def test_a_claim_on_what_is_no_number_is_void(number: object) -> None:
    """A claim is a hint: one member's nonsense must not end the plan of all."""
    claimed: Any = frozenset({("a", number), ("a", 1)})
    made = plan([Topic("a", 2)], [Member("m", frozenset("a"), owned=claimed), Member("n", frozenset("a"))])
    assert ("a", 1) in made.partitions["m"]


@pytest.mark.parametrize("name", [7, None, b"a", "\ud800"])
def test_names_that_are_no_texts_are_refused_by_name(name: Any) -> None:
    """They ended a plan with an AttributeError or UnicodeEncodeError of the hash."""
    with pytest.raises(TopicError, match="need a text"):
        Topic(name, 3)
    with pytest.raises(GroupError, match="need texts"):
        Member(name, frozenset())
    if name is not None:
        with pytest.raises(GroupError, match="need texts"):
            Member("m", frozenset(), instance=name)


def test_numbers_beyond_kafka_are_refused() -> None:
    """They ended a plan with an OverflowError, or a ValueError of numpy."""
    with pytest.raises(TopicError, match="2147483647"):
        Topic("a", 2**31)
    for weight in (1e308, 10**400):
        with pytest.raises(WeightError, match="1e\\+100"):
            plan([Topic("a", 3)], [Member("m", frozenset("a"))], weights={"a": weight})


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: plan([Topic("t", MOST_PLANNED), Topic("u", 1)], [Member("m", BOTH)]), str(MOST_PLANNED)),
        (lambda: plan([Topic("t", 10**9)], [Member("m", BOTH)]), str(10**9)),
        (lambda: plan(["t"], [Member("m", BOTH)]), "topics"),  # type: ignore[list-item]  # wrong on purpose
        (lambda: plan([Topic("t", 1)], "m"), "members"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: plan([Topic("t", 1)], 5), "members"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: plan([Topic("t", 1)], [Member("m", BOTH, owned=frozenset({5}))]), "owned"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: plan([Topic("t", 1)], [Member("m", BOTH, owned=frozenset({"t"}))]), "owned"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Member("m", None), "topics"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Member("m", "flights"), "topics"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Member("m", BOTH, owned=5), "owned"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Member("m", BOTH, generation="x"), "generation"),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_input_that_no_plan_can_take_is_refused_with_its_name(call: Callable[[], object], named: str) -> None:
    """A billion partitions would not end, and a wrong type would fail deep inside with the name of a built-in."""
    with pytest.raises(AssignorError, match=named):
        call()
