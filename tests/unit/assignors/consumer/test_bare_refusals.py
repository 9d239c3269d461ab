"""A group that refuses its member: both consumers report the broker's error, and go on when it is lifted."""

import logging
import threading
import time
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError

from assignors import GroupConsumer
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, Case, Raised, at, attempt, check, plain
from tests.waiting import wait_until

pytestmark = pytest.mark.long

METADATA, COMMIT, FETCH_OFFSETS, FIND, JOIN, HEARTBEAT, SYNC, HEARTBEAT_OF_BROKER = 3, 8, 9, 10, 11, 12, 14, 68
JOINING: Final = (
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.GROUP_MAX_SIZE_REACHED,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    KafkaError.INVALID_GROUP_ID,
    KafkaError.INVALID_SESSION_TIMEOUT,
    KafkaError.UNKNOWN,
)
FINDING: Final = (
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.INVALID_GROUP_ID,
    KafkaError.UNKNOWN,
)
SILENT: Final = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE)
COMMITTING: Final = (
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.INVALID_COMMIT_OFFSET_SIZE,
    KafkaError.OFFSET_METADATA_TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN,
)
PATIENCE_S: Final = 20.0
STANDING_S: Final = 1.5  # several attempts


def _mocked(bench: Bench) -> MockCluster:
    assert isinstance(bench.cluster, MockCluster)
    return bench.cluster


def _refused_at_first(request: int, code: int, bench: Bench) -> Any:
    """The distinct errors, whether the bare client's way to report them was used, and all records afterwards."""
    cluster = _mocked(bench)
    cluster.fail(request, code)
    try:
        one = bench.make(**SHORT)
        one.subscribe(["t"])
        errors: set[tuple[Any, ...]] = set()
        until = time.monotonic() + PATIENCE_S
        since: float | None = time.monotonic() if code in SILENT else None
        while since is None or time.monotonic() < since + STANDING_S:
            assert time.monotonic() < until
            message = one.poll(0.05)
            if message is not None:
                error = message.error()
                errors.add((message.topic(), message.partition(), error.code(), error.str(), error.fatal()))
                since = since or time.monotonic()
    finally:
        cluster.fail(request, 0)
    records = 0
    while records < 3 * RECORDS:
        assert time.monotonic() < until
        message = one.poll(0.1)
        records += message is not None and message.error() is None
    return [errors, records]


def _heartbeats_refused(bench: Bench) -> Any:
    """The partitions are lost: others may own them when the session of the member has ended."""
    cluster = _mocked(bench)
    lost: list[Any] = []
    assigned: list[Any] = []
    one, _ = bench.joined(
        on_assign=lambda _, partitions: assigned.append(sorted(plain(partitions))),
        on_lost=lambda _, partitions: lost.append(sorted(found.partition for found in partitions)),
        **SHORT,
    )
    until = time.monotonic() + PATIENCE_S
    cluster.fail(HEARTBEAT, KafkaError.GROUP_AUTHORIZATION_FAILED)
    try:
        while not lost:
            assert time.monotonic() < until
            one.poll(0.05)
    finally:
        cluster.fail(HEARTBEAT, 0)
    while len(assigned) < 1 + len(lost):
        assert time.monotonic() < until
        one.poll(0.05)
    return [lost[0], assigned[0], assigned[-1]]


def _offsets_refused(code: int, bench: Bench) -> Any:
    """One message for the request, and one for each partition."""
    cluster = _mocked(bench)
    cluster.fail(FETCH_OFFSETS, code)
    found: list[Any] = []
    try:
        one = bench.make(**SHORT)
        one.subscribe(["t"])
        until = time.monotonic() + PATIENCE_S
        while len(found) < 4:
            assert time.monotonic() < until
            if (message := one.poll(0.05)) is not None:
                found.append((message.topic() or "", message.partition(), message.error().code()))
    finally:
        cluster.fail(FETCH_OFFSETS, 0)
    return sorted(found)


def _commits_refused(code: int, bench: Bench) -> Any:
    """The call raises the broker's code, on_commit gets it, and the next commit is accepted."""
    cluster = _mocked(bench)
    heard: list[int | None] = []
    one, _ = bench.joined(on_commit=lambda error, _: heard.append(error and error.code()))
    until = time.monotonic() + PATIENCE_S
    cluster.fail(COMMIT, code)
    try:
        raised = attempt(lambda: one.commit(offsets=[at(0, 5)], asynchronous=False))
        one.commit(offsets=[at(1, 6)], asynchronous=True)
        while code not in heard:
            assert time.monotonic() < until
            one.poll(0.05)
    finally:
        cluster.fail(COMMIT, 0)
    accepted = plain(one.commit(offsets=[at(0, 7)], asynchronous=False))
    return [raised, accepted, plain(one.committed([at(0), at(1)], 10))]


def _asked_after_the_end(bench: Bench) -> Any:
    """The broker ends the membership for good: the group's offsets can still be read."""
    cluster = _mocked(bench)
    one, _ = bench.joined()
    one.commit(offsets=[at(0, 5)], asynchronous=False)
    cluster.fail(HEARTBEAT_OF_BROKER, KafkaError.GROUP_AUTHORIZATION_FAILED)
    until = time.monotonic() + PATIENCE_S
    try:
        ended: Any = None
        while not (isinstance(ended, Raised) or (ended and ended.error().code() == KafkaError._FATAL)):
            assert time.monotonic() < until
            ended = attempt(lambda: one.poll(0.05))
    finally:
        cluster.fail(HEARTBEAT_OF_BROKER, 0)
    return plain(one.committed([at(0), at(1)], 10))


def _asked_beside_the_end(bench: Bench) -> Any:
    """Another thread unsubscribes meanwhile."""
    one, _ = bench.joined()
    one.commit(offsets=[at(0, 5)], asynchronous=False)
    other = threading.Thread(target=one.unsubscribe)
    other.start()
    found: list[Any] = []
    while other.is_alive() or not found:
        found.append(plain(one.committed([at(0), at(1)], 10)))
    other.join()
    return set(map(tuple, found))


def _named(kind: str, code: int) -> str:
    return f"{kind} {KafkaError(code).name()}"


CASES: Final[dict[str, Case]] = (
    {_named("join", code): partial(_refused_at_first, JOIN, code) for code in (*JOINING, *SILENT)}
    | {_named("find", code): partial(_refused_at_first, FIND, code) for code in (*FINDING, *SILENT)}
    | {_named("sync", code): partial(_refused_at_first, SYNC, code) for code in SILENT}
    | {_named("commit", code): partial(_commits_refused, code) for code in COMMITTING}
    | {
        _named("fetch offsets", code): partial(_offsets_refused, code)
        for code in (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    }
    | {"heartbeat GROUP_AUTHORIZATION_FAILED": _heartbeats_refused}
)


def _apart(cases: dict[str, Case]) -> list[Any]:
    """The cases of the commonest refusal, and the others, which take two minutes, as slow ones."""
    usual = "GROUP_AUTHORIZATION_FAILED"
    return [name if name.endswith(usual) else pytest.param(name, marks=pytest.mark.slow) for name in cases]


@pytest.mark.parametrize("name", _apart(CASES))
def test_both_consumers_do_the_same(cluster: MockCluster, name: str) -> None:
    """A program that waits for rights to be granted must not end, and has to hear why nothing comes."""
    check(CASES[name], cluster)


# Librdkafka ends a member that the broker refuses otherwise, and its message is then _FATAL.
BROKER_ASSIGNED: Final[dict[str, Case]] = {
    _named("find", code): partial(_refused_at_first, FIND, code) for code in (*FINDING, *SILENT)
} | {
    _named("heartbeat", code): partial(_refused_at_first, HEARTBEAT_OF_BROKER, code)
    for code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, *SILENT)
}
ASKED: Final[dict[str, Case]] = {"after the end": _asked_after_the_end, "beside the end": _asked_beside_the_end}


@pytest.mark.parametrize("name", _apart(BROKER_ASSIGNED))
def test_both_consumers_do_the_same_where_the_broker_assigns(cluster: MockCluster, name: str) -> None:
    """The member is librdkafka's there, and its errors reach the program as well."""
    check(BROKER_ASSIGNED[name], cluster, "consumer")


@pytest.mark.parametrize("name", list(ASKED))
def test_offsets_of_a_group_can_be_read_when_a_membership_ends(cluster: MockCluster, name: str) -> None:
    """The call raised an error about the member, although the group keeps what it committed."""
    check(ASKED[name], cluster, "consumer")


def test_offsets_of_a_group_can_be_read_while_a_member_leaves(cluster: MockCluster) -> None:
    """The same in the classic protocol."""
    check(_asked_beside_the_end, cluster)


def test_a_refused_member_hears_once_asks_seldom_and_closes_at_once(cluster: MockCluster) -> None:
    """Attempts without pauses would load the broker; close() need not wait for a rebalance that the group refused."""
    attempts = 40
    cluster.fail(JOIN, KafkaError.UNKNOWN, attempts)
    heard = 0
    try:
        one = Bench(cluster, GroupConsumer).make(**SHORT)
        one.subscribe(["t"])
        until = time.monotonic() + 2 * STANDING_S
        while time.monotonic() < until:
            message = one.poll(0.05)
            assert message is None or message.error() is not None, f"{attempts} attempts are over"
            heard += message is not None
        begun = time.monotonic()
        one.close()
        assert time.monotonic() - begun < 3
    finally:
        cluster.fail(JOIN, 0)
    assert heard == 1


def test_a_member_whose_instance_id_is_taken_says_so_once_and_joins_when_it_is_free(
    cluster: MockCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The bare client's member ends for ever. Here a program that was restarted waits for its former session's end."""
    cluster.fail(HEARTBEAT_OF_BROKER, KafkaError.UNRELEASED_INSTANCE_ID)
    bench = Bench(cluster, GroupConsumer, "consumer")
    errors: list[str] = []
    try:
        one = bench.make(**{"group.instance.id": "a"})
        one.subscribe(["t"])
        until = time.monotonic() + PATIENCE_S
        since: float | None = None
        while since is None or time.monotonic() < since + 4 * STANDING_S:  # several members, one after the other
            assert time.monotonic() < until
            message = one.poll(0.05)
            if message is not None:
                errors.append(message.error().name())
                since = since or time.monotonic()
        cluster.fail(HEARTBEAT_OF_BROKER, 0)
        records = 0
        while records < 3 * RECORDS:
            assert time.monotonic() < until + PATIENCE_S
            message = one.poll(0.1)
            records += message is not None and message.error() is None
    finally:
        cluster.fail(HEARTBEAT_OF_BROKER, 0)
        bench.close()
    assert errors == ["UNRELEASED_INSTANCE_ID"]
    ended = [one for one in caplog.records if "joining again" in one.getMessage() and one.levelno >= logging.WARNING]
    assert len(ended) == 1


def test_a_commit_after_the_groups_last_refusal_raises_it(cluster: MockCluster) -> None:
    """Nothing is owned any more, so an empty result would look like a commit of all."""
    cluster.fail(HEARTBEAT_OF_BROKER, KafkaError.GROUP_AUTHORIZATION_FAILED)
    bench = Bench(cluster, GroupConsumer, "consumer")
    try:
        one = bench.make()
        one.subscribe(["t"])
        wait_until(lambda: isinstance(attempt(lambda: one.poll(0.1)), Raised))
        raised = attempt(lambda: one.commit(asynchronous=False))
    finally:
        cluster.fail(HEARTBEAT_OF_BROKER, 0)
        bench.close()
    assert isinstance(raised, Raised)
    assert raised.error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_a_broker_that_answers_late_ends_no_subscription(cluster: MockCluster) -> None:
    """A program that starts while brokers restart waits, and does not fail with the first answer."""
    cluster.fail(METADATA, KafkaError.NOT_CONTROLLER)
    bench = Bench(cluster, GroupConsumer, "consumer")
    lifted = threading.Timer(1.0, cluster.fail, (METADATA, 0))
    try:
        one = bench.make()
        lifted.start()
        one.subscribe(["t"])
        wait_until(lambda: one.poll(0.1))
    finally:
        lifted.join()
        bench.close()
