"""Claims as arrays, against the definition of a valid claim."""

from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import Member, Topic
from assignors.planner.input_arrays import NO_OWNER, SEVERAL_CLAIMANTS, read_problem

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
