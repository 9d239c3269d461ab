"""Consumers that their programs drop without close()."""

import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from assignors import GroupConsumer
from assignors.consumer.consumer_parts import ConsumerParts
from producer.testing import MockCluster
from tests.records import read
from tests.unit.assignors.conftest import RECORDS, consumer
from tests.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_dropped_consumer_ends_its_threads_and_leaves_its_group(mock: MockCluster, protocol: str) -> None:
    """Its partitions would wait for a program that can no longer poll."""
    before = set(threading.enumerate())
    program: dict[str, object] = {}  # as an object of the program, whose method is the callback, refers to its consumer

    def callback(*_: object, _program: object = program) -> None:
        pass

    settings: dict[str, object] = dict.fromkeys(("error_cb", "on_commit", "stats_cb", "throttle_cb"), callback)
    settings |= {"statistics.interval.ms": 5, "logger": SimpleNamespace(log=callback)}
    if protocol == "classic":
        one = consumer(mock, **settings)
    else:
        servers = {"bootstrap.servers": mock.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        one = GroupConsumer({**servers, "group.protocol": protocol, "log_level": 0, **settings})
    program["consumer"] = one
    one.subscribe(["t"], on_assign=callback, on_revoke=callback, on_lost=callback)
    read(one, 30)
    poll_one_by_one(one, 30)
    del one, program, callback, settings
    gc.collect()
    wait_until(lambda: not set(threading.enumerate()) - before)
    with consumer(mock) as two:
        two.subscribe(["t"])
        assert len(read(two, 3 * RECORDS)) == 3 * RECORDS


class _Program:
    """Makes a consumer that gets its token, and its lines of the log, from this object."""

    def __init__(self, servers: str) -> None:
        config = {"bootstrap.servers": servers, "group.id": "g", "log_level": 0, "sasl.mechanism": "OAUTHBEARER"}
        more = {"security.protocol": "SASL_PLAINTEXT", "oauth_cb": self.token}
        self.consumer = GroupConsumer({**config, **more}, logger=self)  # type: ignore[arg-type]  # has `log`

    def token(self, _: str) -> tuple[str, float]:
        """As confluent_kafka's `oauth_cb`."""
        return "token", time.time() + 100

    def log(self, *_: object) -> None:
        """As logging.Logger.log."""


def test_a_program_that_gives_its_own_token_and_log_is_dropped_with_its_consumer() -> None:
    """The member's threads refer to the configuration, but not to what is in it."""
    program = _Program("127.0.0.1:1")
    dropped = weakref.ref(program)
    del program
    gc.collect()
    assert dropped() is None


def poll_one_by_one(one: GroupConsumer, count: int) -> list[Message]:
    """So many records, by poll."""
    found: list[Message] = []
    until = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count} records"
        found += [message for message in [one.poll(0.2)] if message is not None]
    return found


class _Closes:
    """An object of the program in a reference cycle, which closes its consumer when it is collected."""

    def __init__(self, one: GroupConsumer, revoked: list[int]) -> None:
        self.me = self
        self.consumer = one
        one.subscribe(["t"], on_revoke=lambda _, partitions: revoked.append(len(partitions)))

    def __del__(self) -> None:
        self.consumer.close()


class _Listens:
    """A program whose methods are the callbacks of its consumer, which it closes when it is collected."""

    def __init__(self, kind: type[Consumer | GroupConsumer], config: dict[str, Any], heard: list[str]) -> None:
        self.heard = heard
        self.closes = False
        callbacks = {"on_commit": self.on_commit, "stats_cb": self.on_stats, "error_cb": self.on_error, "logger": self}
        more: dict[str, Any] = {} if kind is Consumer else {"member": {"api_version": (2, 0)}}
        self.consumer = kind({**config, **callbacks}, **more)
        self.consumer.subscribe(["t"])

    def on_commit(self, _error: object, partitions: list[TopicPartition]) -> None:
        self.hear(f"on_commit {len(partitions)}")

    def on_stats(self, _report: str) -> None:
        self.hear("stats_cb")

    def on_error(self, error: KafkaError) -> None:
        self.hear(f"error_cb {error.name()}")

    def log(self, *_: object) -> None:
        self.hear("log")

    def hear(self, what: str) -> None:
        if self.closes:
            self.heard.append(what)

    def __del__(self) -> None:
        self.closes = True
        self.consumer.close()


@pytest.mark.parametrize("kind", [Consumer, GroupConsumer])
def test_callbacks_are_called_while_a_collected_cycle_closes_its_consumer(
    mock: MockCluster, kind: type[Consumer | GroupConsumer]
) -> None:
    """The collector has cleared weak references by then, and a program that listens misses its last commit."""
    heard: list[str] = []
    config = {
        "bootstrap.servers": mock.bootstrap_servers,
        "group.id": kind.__name__,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 60_000,
        "statistics.interval.ms": 1,  # close() takes longer
        "log_level": 7,
        "debug": "consumer",
    }
    program = _Listens(kind, config, heard)
    found = 0
    until = time.monotonic() + 20
    while found < 3 * RECORDS and time.monotonic() < until:
        found += program.consumer.poll(0.2) is not None
    if isinstance(program.consumer, GroupConsumer):  # a mock has no way to let an error wait for close()
        program.consumer._kafka_azimuth.fetching._config["error_cb"](KafkaError(KafkaError._TRANSPORT))
        parts = id(program.consumer._kafka_azimuth)
    del program
    gc.collect()
    assert {"on_commit 3", "stats_cb", "log"} <= set(heard)
    if kind is GroupConsumer:
        assert "error_cb _TRANSPORT" in heard
        # not by a weak reference, which the first collection clears even of what stays; and not by isinstance(),
        # which fails for a weak proxy of what is gone
        gc.collect()
        assert not any(type(one) is ConsumerParts and id(one) == parts for one in gc.get_objects())


def test_a_consumer_closed_by_a_collected_cycle_revokes_and_commits(mock: MockCluster) -> None:
    """As one of confluent_kafka: no record is read again, and `on_revoke` is called."""
    revoked: list[int] = []
    program = _Closes(consumer(mock, **{"enable.auto.commit": True, "auto.commit.interval.ms": 60_000}), revoked)
    assert len(read(program.consumer, 3 * RECORDS)) == 3 * RECORDS
    program.consumer.poll(0.2)
    gone = weakref.ref(program.consumer)
    del program
    gc.collect()
    assert revoked == [3]
    with consumer(mock) as two:
        ends = two.committed([TopicPartition("t", number) for number in range(3)], timeout=10)
        assert [one.offset for one in ends] == [RECORDS] * 3
    gc.collect()
    assert gone() is None


def test_a_closed_consumer_is_freed_at_once(mock: MockCluster) -> None:
    """Without the collector of cycles, which a program may have switched off."""
    one = consumer(mock)
    one.subscribe(["t"])
    one.close()
    gone = weakref.ref(one)
    gc.disable()
    try:
        del one
        assert gone() is None
    finally:
        gc.enable()
