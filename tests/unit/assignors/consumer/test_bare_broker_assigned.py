"""The cases of both consumers once more, in the protocol in which the broker assigns (KIP-848)."""

from typing import Any, Final

import pytest
from confluent_kafka import Producer

from producer.testing import MockCluster
from tests.unit.assignors.consumer import (
    test_bare_by_hand,
    test_bare_callbacks,
    test_bare_calls,
    test_bare_choices,
    test_bare_commits,
    test_bare_deliveries,
    test_bare_threads,
)
from tests.unit.assignors.consumer.bare_bench import Bench, Case, at, attempt, check

CASES: Final[dict[str, Case]] = test_bare_calls.CASES | {
    body.__name__: body
    for module in (
        test_bare_by_hand,
        test_bare_callbacks,
        test_bare_choices,
        test_bare_commits,
        test_bare_deliveries,
        test_bare_threads,
    )
    for body in module.CASES
}
_NO_ASSIGN: Final = "the bare client refuses assign() in this protocol"
LEFT_OUT: Final = {
    "a_choice_may_come_later": _NO_ASSIGN,
    "a_cooperative_member_that_gives_up_one_partition": "the broker assigns",
    "a_cooperative_member_without_partitions": "the broker assigns",
    "a cooperative member gives up what it does not read": "the broker assigns",
    "a_subscription_replaces_it": _NO_ASSIGN,
    "a_name_that_no_topic_can_have": "neither client reports such a topic in this protocol",
    "errors_of_topics_are_messages": "neither client reports such a topic in this protocol",
    "member id outside of a group": "librdkafka makes up its id before it joins",
    "configuration max.poll.interval.ms=5m": "librdkafka reads 5m as 5",
    "errors of partitions that are not assigned": "librdkafka has another code for incremental_unassign there",
    "on_assign_says_where_to_begin": _NO_ASSIGN,
    "partitions_without_progress_are_listed": _NO_ASSIGN,
    "progress_is_committed_when_reading_ends": _NO_ASSIGN,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES.keys() - LEFT_OUT.keys()))
def test_both_consumers_do_the_same(cluster: MockCluster, name: str) -> None:
    """A program changes its class and the protocol, and nothing else."""
    check(CASES[name], cluster, "consumer")


def test_the_cases_left_out_exist() -> None:
    """A renamed case would run, and fail with a message that explains nothing."""
    assert LEFT_OUT.keys() <= CASES.keys()


def _transaction_of_a_member_that_has_just_subscribed(bench: Bench) -> Any:
    one = bench.make()
    one.subscribe(["t"])
    metadata = one.consumer_group_metadata()
    producer = Producer(
        {"bootstrap.servers": bench.cluster.bootstrap_servers, "transactional.id": bench.kind.__name__, "log_level": 0}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    sent = attempt(lambda: producer.send_offsets_to_transaction([at(0, 3)], metadata, 10))
    producer.abort_transaction(10)
    return metadata[:7], sent


def test_a_member_that_has_just_subscribed_has_group_metadata(cluster: MockCluster) -> None:
    """They were no bytes until the first heartbeat, and a producer refuses those with _BAD_MSG."""
    check(_transaction_of_a_member_that_has_just_subscribed, cluster, "consumer")


def _member_id_in_callbacks(bench: Bench) -> Any:
    seen: list[Any] = []
    one, _ = bench.joined(
        1,
        on_assign=lambda one, _: seen.append(("on_assign", one.memberid())),
        on_revoke=lambda one, _: seen.append(("on_revoke", one.memberid())),
    )
    now = one.memberid()
    one.close()
    return [(name, member_id == now) for name, member_id in seen]


def test_a_member_knows_its_id_in_its_first_on_assign(cluster: MockCluster) -> None:
    """A program that logs or stores the id there got None."""
    check(_member_id_in_callbacks, cluster, "consumer")
