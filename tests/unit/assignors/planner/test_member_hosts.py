"""The node of a member, read from its identity."""

import pytest

from assignors.planner.member_hosts import Node, node_numbers


@pytest.mark.parametrize(
    ("node", "numbers"),
    [
        (None, [0, 0, 1, 2]),  # a number or a UUID at the end is cut
        (r"^(\w)", [0, 0, 0, 1]),  # the first group
        (r"^\w+", [0, 0, 1, 2]),  # no group: the match
        (lambda identity: identity[-1], [0, 1, 0, 2]),
    ],
)
def test_node_is_found_by_cut_pattern_or_function(node: Node, numbers: list[int]) -> None:
    """Identities of host1 (twice), host2 by UUID, and one of another form."""
    identities = ["host1-0", "host1-1", "host2-2a3b4c5d-0000-4000-8000-000000000000", "other"]
    found = node_numbers(identities, node).tolist()
    assert [found.index(n) for n in found] == [numbers.index(n) for n in numbers]


def test_an_identity_with_a_line_break_is_one_identity() -> None:
    """All identities are cut by one search over lines; a name with a line break must not shift the others."""
    assert node_numbers(["a\nb-1", "a\nb-2", "c-1"]).tolist() == [0, 0, 1]
