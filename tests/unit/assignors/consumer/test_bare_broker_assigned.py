"""The cases of both consumers once more, in the protocol in which the broker assigns (KIP-848)."""

from typing import Final

import pytest

from producer.testing import MockCluster
from tests.unit.assignors.consumer import (
    test_bare_callbacks,
    test_bare_calls,
    test_bare_deliveries,
    test_bare_threads,
)
from tests.unit.assignors.consumer.bare_bench import Case, check

CASES: Final[dict[str, Case]] = test_bare_calls.CASES | {
    body.__name__: body
    for module in (test_bare_callbacks, test_bare_deliveries, test_bare_threads)
    for body in module.CASES
}
LEFT_OUT: Final = {
    "a_cooperative_member_that_gives_up_one_partition": "the broker assigns",
    "a_cooperative_member_without_partitions": "the broker assigns",
    "a_name_that_no_topic_can_have": "neither client reports such a topic in this protocol",
    "errors_of_topics_are_messages": "neither client reports such a topic in this protocol",
    "member id outside of a group": "librdkafka makes up its id before it joins",
    "configuration max.poll.interval.ms=5m": "librdkafka reads 5m as 5",
    "errors of partitions that are not assigned": "librdkafka has another code for incremental_unassign there",
    "on_assign_says_where_to_begin": "the bare client refuses assign() in this protocol",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES.keys() - LEFT_OUT.keys()))
def test_both_consumers_do_the_same(cluster: MockCluster, name: str) -> None:
    """A program changes its class and the protocol, and nothing else."""
    check(CASES[name], cluster, "consumer")


def test_the_cases_left_out_exist() -> None:
    """A renamed case would run, and fail with a message that explains nothing."""
    assert LEFT_OUT.keys() <= CASES.keys()
