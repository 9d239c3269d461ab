"""The cases of the bare consumer and of GroupConsumer once more, on real brokers."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stub has no __all__

from spark_sink.demo.cluster import Cluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer import (
    test_aio_group_consumer,
    test_bare_broker_assigned,
    test_bare_by_hand,
    test_bare_choices,
    test_bare_commits,
    test_bare_seeks,
    test_bare_threads,
)
from tests.unit.assignors.consumer.bare_bench import (
    COOPERATIVE,
    STRATEGY,
    Bench,
    Case,
    at,
    attempt,
    check,
    messages,
    plain,
)
from tests.unit.assignors.consumer.intended_differences import reason
from tests.unit.assignors.consumer.surface_walk import STATES, Pair, walk
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CASES: Final[dict[str, Case]] = (
    test_bare_broker_assigned.CASES
    | test_bare_seeks.CASES
    | {
        body.__name__: body
        for module in (test_bare_by_hand, test_bare_choices, test_bare_commits)
        for body in module.CASES
    }
)
PARTITIONS: Final = 3
_SOON_S: Final = 15.0  # a third of the session
LEFT_OUT: Final = {
    "errors_of_topics_are_messages": "the embedded brokers refuse no topic",
    "a_partition_that_is_unknown_for_a_moment": "real brokers give no answer on demand",
    "a_name_that_no_topic_can_have": "beside such a name the bare client reads nothing from real brokers",
}
BROKER_ASSIGNED: Final = sorted(
    name
    for name in test_bare_broker_assigned.CASES.keys() - test_bare_broker_assigned.LEFT_OUT.keys() - LEFT_OUT.keys()
    if not name.startswith("configuration")  # which no broker sees
)


@pytest.fixture(scope="module")
def filled(cluster: Cluster) -> Iterator[Cluster]:
    """The topic of the cases, with records that are numbered."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("t", num_partitions=PARTITIONS, replication_factor=3)])["t"].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for number in range(RECORDS * 3):
        producer.produce("t", str(number // 3).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    yield cluster
    admin.delete_topics(["t"])["t"].result(30)


@pytest.mark.parametrize("name", sorted(CASES.keys() - LEFT_OUT.keys()))
def test_both_consumers_do_the_same(filled: Cluster, name: str) -> None:
    """A program changes its class, and nothing else."""
    check(CASES[name], filled)


@pytest.mark.parametrize("name", BROKER_ASSIGNED)
def test_both_consumers_do_the_same_where_the_broker_assigns(filled: Cluster, name: str) -> None:
    """A program changes its class and the protocol, and nothing else."""
    check(CASES[name], filled, "consumer")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("state", STATES)
def test_both_consumers_close_in_each_state(filled: Cluster, state: str, protocol: str) -> None:
    """With each kind of argument, and so before, in and after a group."""
    outcomes = walk(filled, state, "close", pair=Pair(protocol=protocol))
    different = [one for one in outcomes if not one.alike and reason(one) is None]
    assert not different, "\n".join(map(str, different))


def test_a_child_process_is_refused_and_ends(filled: Cluster) -> None:
    """Its parent goes on."""
    test_bare_threads.fork_and_go_on(filled)


def _unknown_topic(bench: Bench) -> Any:
    one = bench.make()
    one.subscribe(["t", "nosuch"])
    return messages(one, 1 if bench.protocol == "classic" else 0, PARTITIONS * RECORDS)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_both_consumers_report_an_unknown_topic(filled: Cluster, protocol: str) -> None:
    """As a message, beside the records of the other topic; where the broker assigns, neither reports it."""
    check(_unknown_topic, filled, protocol)


def _deleted_topic(bench: Bench, strategy: dict[str, str]) -> Any:
    run = f"{bench.kind.__name__}-{time.monotonic()}"
    deleted, later = f"deleted-{run}", f"later-{run}"
    admin = AdminClient({"bootstrap.servers": bench.cluster.bootstrap_servers})
    admin.create_topics([NewTopic(deleted, num_partitions=2, replication_factor=3)])[deleted].result(30)
    seen: list[tuple[str, list[tuple[str, int]]]] = []

    def note(kind: str) -> Any:
        return lambda _, partitions: seen.append((kind, sorted((one.topic[:5], one.partition) for one in partitions)))

    one = bench.make(**strategy, **{"topic.metadata.refresh.interval.ms": 1000})
    one.subscribe([deleted, later, "t"], on_assign=note("assigned"), on_revoke=note("revoked"), on_lost=note("lost"))
    wait_until(lambda: one.poll(0.1) is None and len(one.assignment()) == 2 + PARTITIONS, 60)
    seen.clear()
    admin.delete_topics([deleted])[deleted].result(30)
    wait_until(lambda: one.poll(0.1) is None and bool(seen) and seen[-1][0] == "assigned", 60)
    # Its assignment is the end of all that the deletion has caused.
    admin.create_topics([NewTopic(later, num_partitions=2, replication_factor=3)])[later].result(30)
    wait_until(lambda: one.poll(0.1) is None and len(one.assignment()) == 2 + PARTITIONS, 60)
    admin.delete_topics([later])[later].result(30)
    return list(seen)


@pytest.mark.parametrize("strategy", [COOPERATIVE, {STRATEGY: "range"}], ids=["cooperative", "eager"])
def test_both_consumers_give_up_a_deleted_topic_alike(filled: Cluster, strategy: dict[str, str]) -> None:
    """A cooperative member loses its partitions, in one rebalance: `on_revoke` would commit them, which is refused."""
    check(partial(_deleted_topic, strategy=strategy), filled)


@pytest.mark.parametrize("body", test_aio_group_consumer.CASES, ids=lambda body: body.__name__)
def test_both_awaited_consumers_do_the_same(filled: Cluster, body: test_aio_group_consumer.Case) -> None:
    """A program changes its class, and nothing else."""
    test_aio_group_consumer.check(body, filled)


@pytest.mark.parametrize("body", test_aio_group_consumer.BROKER_ASSIGNED, ids=lambda body: body.__name__)
def test_both_awaited_consumers_do_the_same_where_the_broker_assigns(
    filled: Cluster, body: test_aio_group_consumer.Case
) -> None:
    """A program changes its class and the protocol, and nothing else."""
    test_aio_group_consumer.check(body, filled, "consumer")


def _producer(bench: Bench) -> Producer:
    servers = {"bootstrap.servers": bench.cluster.bootstrap_servers, "log_level": 0}
    made = Producer({**servers, "transactional.id": f"{bench.kind.__name__}-{time.monotonic()}"})
    made.init_transactions(30)
    return made


def _refusal(producer: Producer, metadata: Any) -> Any:
    """Send offsets for this member once more, and abort."""
    producer.begin_transaction()
    found = attempt(lambda: producer.send_offsets_to_transaction([at(0, 4)], metadata, 30))
    producer.abort_transaction(30)
    return found


def _left(bench: Bench, **more: object) -> Any:
    """A transaction of a member, and one after it has left."""
    one, _ = bench.joined(records=10, **more)
    producer = _producer(bench)
    producer.begin_transaction()
    metadata = one.consumer_group_metadata()
    producer.send_offsets_to_transaction([at(0, 3)], metadata, 30)
    producer.commit_transaction(30)
    found = plain(one.committed([at(0)], 30))
    one.close()
    return [found, _refusal(producer, metadata)]


def _replaced(bench: Bench) -> Any:
    """A static member in whose place another one has come."""
    group = f"{bench.kind.__name__}-{time.monotonic()}"
    named = {"group.id": group, "group.instance.id": "one"}
    one, _ = bench.joined(records=10, **named)
    metadata = one.consumer_group_metadata()
    if bench.protocol == "consumer":  # there a living member is not replaced
        one.close()
    two, _ = bench.joined(records=10, **named)
    producer = _producer(bench)
    refused = _refusal(producer, metadata)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([at(0, 5)], two.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    return [refused, plain(two.committed([at(0)], 30))]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("static", [False, True])
def test_both_consumers_commit_within_a_transaction(filled: Cluster, static: bool, protocol: str) -> None:  # noqa: FBT001 -- a case
    """And a member that has left its group does not any more, with the same code; a static one is still in it."""
    more: dict[str, Any] = {"group.instance.id": "one"} if static else {}
    check(partial(_left, **more), filled, protocol)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_replaced_member_commits_in_no_transaction(filled: Cluster, protocol: str) -> None:
    """The broker refuses both kinds with the same code, and its successor commits."""
    check(_replaced, filled, protocol)


def _ended(bench: Bench, end: str) -> Any:
    """A static member that unsubscribes or closes beside another one, and how many partitions that one has soon."""
    group: dict[str, Any] = {"group.id": f"{bench.kind.__name__}-{time.monotonic()}"}
    one, _ = bench.joined(**group | {"group.instance.id": "one"})
    two = bench.make(**group | {"group.instance.id": "two"})
    two.subscribe(["t"])
    wait_until(lambda: (one.poll(0.05), two.poll(0.05), one.assignment() and two.assignment())[2], 60)
    getattr(one, end)()
    until = time.monotonic() + _SOON_S
    while len(two.assignment()) < PARTITIONS and time.monotonic() < until:
        two.poll(0.05)
        attempt(partial(one.poll, 0))  # librdkafka leaves in the poll that calls on_revoke
    return len(two.assignment())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("end", ["unsubscribe", "close"])
def test_static_members_reserve_their_partitions_alike(filled: Cluster, end: str, protocol: str) -> None:
    """After `close` until the session ends; after `unsubscribe` in a classic group others read them at once."""
    check(partial(_ended, end=end), filled, protocol)
