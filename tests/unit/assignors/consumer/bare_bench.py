"""Runs the same calls on two kinds of consumer, and compares their results.

GroupConsumer's contract lists the intended differences: an empty commit, a commit for another member's
partition, and `assign` without a group.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException, TopicPartition

from assignors import GroupConsumer, HRWAssignor
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS

# The mock holds a group's next rebalance open for the session of a member that has left.
SHORT = {"session.timeout.ms": 1000, "heartbeat.interval.ms": 100}

CLOSING_S = 45.0  # GroupConsumer's own limit is about 20 s
STRATEGY = "partition.assignment.strategy"
COOPERATIVE = {STRATEGY: "cooperative-sticky"}  # GroupConsumer's bench has an assignor of this kind instead


class Servers(Protocol):
    """A cluster, mocked or not."""

    @property
    def bootstrap_servers(self) -> str:
        """Its addresses."""


class Bench:
    """Creates consumers of one of the two kinds, in one of the two protocols, for the cases."""

    def __init__(self, cluster: Servers, kind: type, protocol: str = "classic") -> None:
        self.cluster = cluster
        self.kind = kind
        self.protocol = protocol
        self.made: list[Any] = []
        self.run = time.monotonic()  # the cluster remembers what an earlier run of the same case committed

    def make(self, **more: Any) -> Any:
        """Create a consumer of a new group, or of this run's group of that name; None removes a property."""
        logger = more.pop("logger", None)
        api_version = more.pop("api_version", (2, 0))
        config = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "group.id": f"{self.kind.__name__}-{time.monotonic()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **more,
        }
        if more.get("group.id") is not None:
            config["group.id"] = f"{more['group.id']}-{self.run}"
        if self.protocol == "consumer":
            config = {**config, **dict.fromkeys(SHORT), "group.protocol": "consumer"}
        mocked = isinstance(self.cluster, MockCluster)
        if not mocked:
            config |= {name: None for name, value in SHORT.items() if config.get(name) == value}  # brokers refuse them
        config = {name: value for name, value in config.items() if value is not None}
        extra: dict[str, Any] = {} if logger is None else {"logger": logger}
        if self.kind.__name__.endswith("GroupConsumer") and self.protocol == "classic":
            cooperative = config.pop(STRATEGY, None) == COOPERATIVE[STRATEGY]
            extra |= {
                "assignors": [HRWAssignor(agent="a", cooperative=cooperative)],
                "member": {"api_version": api_version} if mocked else {},
            }
        self.made.append(self.kind(config, **extra))
        return self.made[-1]

    def joined(self, records: int = 3 * RECORDS, **more: Any) -> tuple[Any, list[Any]]:
        """A consumer that owns the topic, and the records that it has read."""
        callbacks = {name: more.pop(name) for name in list(more) if name in {"on_assign", "on_revoke", "on_lost"}}
        one = self.make(**more)
        one.subscribe(["t"], **callbacks)
        found: list[Any] = []
        until = time.monotonic() + 20
        while len(found) < records:
            assert time.monotonic() < until
            found += one.consume(records - len(found), 0.1)
        return one, found

    def close(self) -> None:
        """Close what the case left open, and forget it."""
        while self.made:
            close_in_time(self.made.pop(0))


def close_in_time(one: Any) -> None:
    """Close in a daemon thread: librdkafka's close() can wait for ever for a rebalance that no callback ends.

    A test then fails within a minute, and the process ends all the same. If it waits with the interpreter's lock, no
    thread goes on, so the bare client leaves its group before.
    """
    if type(one) is Consumer:
        _leave(one)
    ended: list[Any] = []
    closing = threading.Thread(target=lambda: ended.append(attempt(one.close)), name="bench-close", daemon=True)
    closing.start()
    closing.join(CLOSING_S)
    assert ended, f"{type(one).__name__}.close() has not returned within {CLOSING_S} s"
    if isinstance(ended[0], Raised):
        raise ended[0].error


def _leave(one: Consumer) -> None:
    """Leave the group, and let each rebalance that waits in librdkafka's queue happen.

    If `close()` meets one after the membership has ended, its callback asks librdkafka for the protocol, and no thread
    is left that answers (rd_kafka_rebalance_protocol waits for ever, with the interpreter's lock).
    """
    with contextlib.suppress(Exception):  # it is closed, has an error to report, or a callback raises
        one.unsubscribe()
    for _ in range(5):
        with contextlib.suppress(Exception):
            one.poll(0.02)


class Raised:
    """An error that a call raised."""

    def __init__(self, error: BaseException) -> None:
        # Its frames would keep the consumer, and with it one of the 1,024 thread-local keys of a process.
        self.error = error.with_traceback(None)

    def __repr__(self) -> str:
        return repr(self.error)


def attempt(call: Callable[[], Any]) -> Any:
    """The value or the error of a call."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 -- compared with the other client's
        return Raised(error)


def alike(bare: Any, ours: Any) -> bool:
    """Whether both are the same; of errors: ours is caught where the bare client's is, with the same code."""
    if isinstance(bare, Raised) and isinstance(ours, Raised):
        same_code = not isinstance(bare.error, KafkaException) or bare.error.args[0].code() == ours.error.args[0].code()
        return isinstance(ours.error, type(bare.error)) and same_code
    if isinstance(bare, list | tuple) and isinstance(ours, list | tuple):
        return len(bare) == len(ours) and all(map(alike, bare, ours))
    return bool(bare == ours)


def plain(partitions: Any) -> Any:
    """Topic, partition, offset and metadata, in the same order."""
    if not isinstance(partitions, list):
        return partitions
    return [(one.topic, one.partition, one.offset, one.metadata or "") for one in partitions]


def at(partition: int, offset: int = -1001, **more: Any) -> TopicPartition:
    """A partition of the topic."""
    return TopicPartition("t", partition, offset, **more)


Case = Callable[[Bench], Any]


def read(one: Any, count: int) -> list[tuple[int, int]]:
    """So many records, in order of partitions."""
    found: list[Any] = []
    until = time.monotonic() + 20
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count}"
        found += one.consume(count - len(found), 0.1)
    return sorted((m.partition(), m.offset()) for m in found)


def messages(one: Any, errors: int, records: int) -> list[tuple[str, int, str]]:
    """Topic, code and text of each error that comes with so many records."""
    found: list[tuple[str, int, str]] = []
    until = time.monotonic() + 20
    while records > 0 or len(found) < errors:
        assert time.monotonic() < until, (records, found)
        message = one.poll(0.1)
        if message is not None and message.error() is not None:
            found.append((message.topic(), message.error().code(), message.error().str()))
        elif message is not None:
            records -= 1
    return sorted(found)


def outcome(body: Case, cluster: Servers, kind: type, protocol: str) -> Any:
    """The result of a case with one kind of consumer."""
    bench = Bench(cluster, kind, protocol)
    try:
        return body(bench)
    finally:
        bench.close()


def check(body: Case, cluster: Servers, protocol: str = "classic") -> None:
    """Run the case with both kinds: a program changes its class, and nothing else."""
    bare, ours = (outcome(body, cluster, kind, protocol) for kind in (Consumer, GroupConsumer))
    assert alike(bare, ours), f"bare: {bare!r}\nours: {ours!r}"
