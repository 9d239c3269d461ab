"""The identity of a topic."""

from assignors.fleet import FleetTopic
from assignors.fleet.fleet_topic import once_each


def test_a_topic_of_two_sources_that_are_one_cluster_is_read_for_the_first() -> None:
    """The same name on another cluster stays another topic; one sentence says which sources, and the way out."""
    one = FleetTopic("c1", "1", "x", "first")
    twin = FleetTopic("c1", "1", "x", "second")
    other, alone = FleetTopic("c2", "1", "x", "third"), FleetTopic("c1", "2", "y", "second")
    topics, problems = once_each([one, twin, other, alone])
    assert topics == (one, other, alone)
    (problem,) = problems
    assert "'first' and 'second' are one cluster" in problem
    assert "'x'" in problem
    assert "take them out" in problem
