"""How many partitions a job takes: by published numbers, and by its measured rate."""

from hypothesis import given
from hypothesis import strategies as st

from assignors.claims import Claim
from spark_sink.claimed.partitions_per_job import RoundSize, surplus


def claims(topic: str, count: int) -> list[Claim]:
    """Claims of a topic."""
    return [Claim(topic, n, 1) for n in range(count)]


@given(st.integers(1, 40), st.integers(1, 50))
def test_as_many_jobs_as_published_hold_the_whole_topic(partitions: int, workers: int) -> None:
    """Each gets its share, rounded up: k jobs are enough for the topic, and one job never keeps the others away."""
    every = claims("a", partitions)
    kept = len(every) - len(surplus(every, {"a": workers}, {"a": partitions}, {}))
    assert kept == -(-partitions // workers)
    assert kept * workers >= partitions


def test_topics_without_a_number_have_no_limit_and_each_partition_has_its_turn() -> None:
    """A job that is alone reads all partitions, some in each round; one that it never visited comes first."""
    found = [*claims("a", 5), *claims("b", 3)]
    visited: dict[tuple[str, int], float] = {}
    for time_s in (1.0, 2.0):
        over = surplus(found, {"a": 2, "c": 1}, {"a": 5, "b": 3}, visited)
        assert {one.topic for one in over} == {"a"}
        visited |= {(one.topic, one.partition): time_s for one in found if one not in over}
    assert visited.keys() == {(one.topic, one.partition) for one in found}


def test_a_round_has_as_many_partitions_as_the_job_reads_in_its_time() -> None:
    """At 4 s a partition a round of 16 would take a minute, while other jobs could read its partitions."""
    size = RoundSize(most=16, target_s=10.0)
    assert size.partitions == 16, "nothing is measured yet"
    for _ in range(30):
        size.note(size.partitions, 4.0 * size.partitions)
    assert size.partitions == 2
    for _ in range(60):
        size.note(size.partitions, 0.01)
    assert size.partitions == 16
    size.note(1, 1e6)
    assert size.partitions == 1, "one at least"
    size.note(0, 5.0)
    assert size.partitions == 1
