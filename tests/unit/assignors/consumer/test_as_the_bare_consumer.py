"""The same calls on confluent_kafka.Consumer and on GroupConsumer: results, errors, callbacks and commits are alike.

Where both differ on purpose stands in GroupConsumer's contract: a commit of nothing, a commit for another member's
partition, `assign` without a group, and the position after a seek.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Producer, TopicPartition

from assignors import GroupConsumer, HRWAssignor
from producer.testing import MockCluster
from tests.unit.assignors.conftest import RECORDS

_UNAUTHORIZED = 29
# The mock holds a group's next rebalance open for the session of a member that has left.
SHORT = {"session.timeout.ms": 1000, "heartbeat.interval.ms": 100}


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A topic of three partitions with records, and one that no client may read."""
    with MockCluster() as made:
        made.wait_for_members(50)
        made.create("t", [1, 2, 3])
        made.create("secret", [1])
        producer = Producer({"bootstrap.servers": made.bootstrap_servers, "log_level": 0})
        for number in range(RECORDS * 3):
            producer.produce("t", str(number // 3).encode(), partition=number % 3)
        assert producer.flush(20) == 0
        made.refuse("secret", _UNAUTHORIZED)
        yield made


class Bench:
    """Makes consumers of one of the two kinds, and what a case does with them."""

    def __init__(self, cluster: MockCluster, kind: type) -> None:
        self.cluster = cluster
        self.kind = kind
        self.made: list[Any] = []

    def make(self, **more: Any) -> Any:  # noqa: ANN401 -- either kind of consumer
        """A consumer of a group of its own; None takes a property away."""
        logger = more.pop("logger", None)
        config = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "group.id": f"{self.kind.__name__}-{time.monotonic()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **more,
        }
        config = {name: value for name, value in config.items() if value is not None}
        extra: dict[str, Any] = {} if logger is None else {"logger": logger}
        if self.kind is GroupConsumer:
            extra |= {"assignors": [HRWAssignor(agent="a")], "member": {"api_version": (2, 0)}}
        self.made.append(self.kind(config, **extra))
        return self.made[-1]

    def joined(self, records: int = 3 * RECORDS, **more: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401 -- as above
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
        """Close what the case left open."""
        for one in self.made:
            one.close()


class Raised:
    """An error that a call raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        return repr(self.error)


def attempt(call: Callable[[], Any]) -> Any:  # noqa: ANN401 -- whatever the call returns
    """The value or the error of a call."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 -- compared with the other client's
        return Raised(error)


def alike(bare: Any, ours: Any) -> bool:  # noqa: ANN401 -- results of any kind
    """Whether both are the same; of errors: ours is caught where the bare client's is, with the same code."""
    if isinstance(bare, Raised) and isinstance(ours, Raised):
        same_code = not isinstance(bare.error, KafkaException) or bare.error.args[0].code() == ours.error.args[0].code()
        return isinstance(ours.error, type(bare.error)) and same_code
    if isinstance(bare, list | tuple) and isinstance(ours, list | tuple):
        return len(bare) == len(ours) and all(map(alike, bare, ours))
    return bool(bare == ours)


def plain(partitions: Any) -> Any:  # noqa: ANN401 -- a list of partitions, or an error
    """Topic, partition, offset and metadata."""
    if not isinstance(partitions, list):
        return partitions
    return sorted((one.topic, one.partition, one.offset, one.metadata or "") for one in partitions)


def at(partition: int, offset: int = -1001, **more: Any) -> TopicPartition:  # noqa: ANN401 -- as the class
    """A partition of the topic."""
    return TopicPartition("t", partition, offset, **more)


Case = Callable[[Bench], Any]
CASES: dict[str, Case] = {}


def case(body: Case) -> Case:
    """Add a case under its function's name."""
    CASES[body.__name__] = body
    return body


def calls(name: str, *arguments: Any, **named: Any) -> Case:  # noqa: ANN401 -- any method's
    """One call on a consumer that has no subscription."""
    return lambda bench: attempt(lambda: getattr(bench.make(), name)(*arguments, **named))


def configured(name: str, value: object) -> Case:
    """A consumer with this property, or its error."""
    return lambda bench: attempt(lambda: bench.make(**{name: value}).close())


CASES |= {
    "poll without a subscription": calls("poll", 0.01),
    "consume without a subscription": calls("consume", 1, 0.01),
    "assignment without a subscription": calls("assignment"),
    "consume of nothing": calls("consume", 0, 0.01),
    "consume of too many": calls("consume", 1_000_001, 0.01),
    "consume of fewer than nothing": calls("consume", -1, 0.01),
    "a commit of a record and of offsets": calls("commit", message=1, offsets=[at(0, 1)]),
    "an asynchronous commit of nothing": calls("commit"),
    "subscribe to a text": calls("subscribe", "t"),
    "subscribe to nothing": calls("subscribe", []),
    "subscribe to an empty name": calls("subscribe", [""]),
    "subscribe to a broken pattern": calls("subscribe", ["^("]),
    "subscribe with a callback that is none": calls("subscribe", ["t"], on_assign=5),
    "unsubscribe from nothing": calls("unsubscribe"),
    "unassign of nothing": calls("unassign"),
    "store without arguments": calls("store_offsets"),
    "pause what is not assigned": calls("pause", [at(0)]),
    "resume what is not assigned": calls("resume", [at(0)]),
    "watermarks": calls("get_watermark_offsets", at(1), timeout=10),
    "watermarks of no partition": calls("get_watermark_offsets", at(9), timeout=10),
    "cluster id": calls("cluster_id", 10),
    "credentials": calls("set_sasl_credentials", "me", "secret"),
    "position of what is not assigned": lambda bench: plain(bench.make().position([at(0)])),
    "offsets for times": lambda bench: plain(bench.make().offsets_for_times([at(0, 0)], timeout=10)),
    "topics": lambda bench: sorted(bench.make().list_topics(timeout=10).topics),
    "member id outside of a group": lambda bench: bool(bench.make().memberid()),
}
for _name, _value in {
    "enable.auto.commit": "yes",
    "enable.auto.offset.store": 2,
    "auto.offset.reset": "none",
    "group.id": None,
    "no.such.property": 1,
    "max.poll.interval.ms": "5m",
    "session.timeout.ms": "soon",
}.items():
    CASES[f"configuration {_name}={_value}"] = configured(_name, _value)
for _name, _value in {"enable.auto.commit": "T", "group.protocol": "classic", "auto.offset.reset": "end"}.items():
    CASES[f"configuration {_name}={_value}"] = configured(_name, _value)
_AFTER_CLOSE: dict[str, tuple[Any, ...]] = {
    "poll": (0,),
    "consume": (1, 0),
    "subscribe": (["t"],),
    "unsubscribe": (),
    "assign": ([at(0)],),
    "unassign": (),
    "incremental_assign": ([at(0)],),
    "incremental_unassign": ([at(0)],),
    "assignment": (),
    "position": ([at(0)],),
    "committed": ([at(0)],),
    "commit": (),
    "store_offsets": (None, [at(0, 1)]),
    "seek": (at(0, 1),),
    "pause": ([at(0)],),
    "resume": ([at(0)],),
    "memberid": (),
    "consumer_group_metadata": (),
    "list_topics": (),
    "cluster_id": (),
    "get_watermark_offsets": (at(0),),
    "offsets_for_times": ([at(0, 0)],),
    "set_sasl_credentials": ("me", "secret"),
    "close": (),
}


@case
def every_call_after_close(bench: Bench) -> Any:  # noqa: ANN401 -- results
    """RuntimeError."""
    one = bench.make()
    one.close()
    return [attempt(partial(getattr(one, name), *given)) for name, given in _AFTER_CLOSE.items()]


@case
def a_commit_outside_of_a_group(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Accepted while the group is empty, with its metadata."""
    one = bench.make()
    committed = plain(one.commit(offsets=[at(0, 3, metadata="x")], asynchronous=False))
    return committed and plain(one.committed([at(0), at(1)], 10))


@case
def a_joined_consumer_answers(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Assignment, position, member id, metadata of the group."""
    one, _ = bench.joined()
    metadata = one.consumer_group_metadata()
    whole = metadata.startswith(b"CGMDv2:") and metadata.endswith(one.memberid().encode() + b"\0\1")
    return [len(one.assignment()), plain(one.position(one.assignment())), bool(one.memberid()), whole]


@case
def errors_of_partitions_that_are_not_assigned(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Seek, position and pause; storing where records are stored automatically."""
    one, _ = bench.joined(records=1)
    other = TopicPartition("u", 0, 40)
    return [
        attempt(lambda: one.seek(at(9, 40))),
        attempt(lambda: plain(one.position([other]))),
        attempt(lambda: one.pause([other])),
        attempt(lambda: one.incremental_unassign([other])),
        attempt(lambda: one.store_offsets(offsets=[at(0, 3)])),
    ]


@case
def commits_are_found_again(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Of everything, of a record, of offsets with metadata, with one that is left out."""
    one, found = bench.joined()
    third = next(m for m in found if m.partition() == 1 and m.offset() == 3)
    results = [
        plain(one.commit(asynchronous=False)),
        plain(one.commit(third, asynchronous=False)),
        plain(one.commit(offsets=[at(0, 5, metadata="hello")], asynchronous=False)),
    ]
    return [*results, plain(one.committed([at(n) for n in range(3)], 10))]


@case
def asynchronous_commits_call_on_commit_each(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """With no error and the offsets of the call, also at the end."""
    seen: list[Any] = []
    one, found = bench.joined(on_commit=lambda error, partitions: seen.append((error, plain(partitions))))
    zero = [m for m in found if m.partition() == 0]
    for number in (0, 3, 5):
        one.commit(zero[number])
    until = time.monotonic() + 10
    while len(seen) < 3 and time.monotonic() < until:
        one.poll(0.05)
    one.commit(zero[7])
    one.close()
    return seen


@case
def on_commit_that_raises(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Its error comes out of poll."""

    def broken(*_: object) -> None:
        raise LookupError

    one, found = bench.joined(on_commit=broken)
    one.commit(found[0])
    for _ in range(100):
        if isinstance(result := attempt(lambda: one.poll(0.05)), Raised):
            return result
    return "never"


@case
def seek_and_pause(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """To an offset, to both ends; a paused partition delivers nothing until it is resumed."""
    one, _ = bench.joined()
    one.pause([at(1)])
    one.seek(at(0, 47))
    one.seek(at(1, 40))
    one.seek(at(2, OFFSET_END))
    first = read(one, 3)
    silent = one.poll(0.1)
    one.resume([at(1)])
    second = read(one, 10)
    one.seek(at(2, OFFSET_BEGINNING))
    return [first, silent, second, read(one, RECORDS)]


@case
def one_by_one(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Poll delivers each record once; what it has delivered is the position, and pausing keeps the rest."""
    one = bench.make()
    one.subscribe(["t"])
    found: list[Any] = []
    while len(found) < 30:
        found += [m for m in [one.poll(0.1)] if m is not None]
    one.pause(one.assignment())
    after = {p.partition: p.offset for p in one.position(one.assignment()) if p.offset > 0}
    counted = {n: sum(m.partition() == n for m in found) for n in range(3)}
    silent = one.poll(0.1)
    one.resume(one.assignment())
    while len(found) < 3 * RECORDS:
        found += [m for m in [one.poll(0.1)] if m is not None]
    whole = sorted((m.partition(), m.offset()) for m in found)
    return [silent, after == {n: count for n, count in counted.items() if count}, whole]


@case
def callbacks_of_a_subscription(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Assigned, revoked by unsubscribe, assigned again, revoked by close; a commit in on_revoke is kept."""
    seen: list[Any] = []

    def revoked(one: Any, partitions: Any) -> None:  # noqa: ANN401 -- either kind
        seen.append(("revoked", plain(partitions)[0][2] > 0, plain(one.commit(asynchronous=False))))

    one, _ = bench.joined(on_assign=lambda _, p: seen.append(("assigned", plain(p))), on_revoke=revoked, **SHORT)
    one.unsubscribe()
    one.poll(0.05)
    seen.append(len(one.assignment()))
    one.subscribe(["t"], on_assign=lambda _, p: seen.append(("again", len(p))))
    while not one.assignment():
        one.poll(0.05)
    one.close()
    return [entry if entry[0] != "revoked" else ("revoked", entry[2]) for entry in seen if isinstance(entry, tuple)]


@case
def a_callback_that_raises(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Its error comes out of poll, and the partitions are read all the same; in close, out of close."""

    def broken(*_: object) -> None:
        raise LookupError

    one = bench.make()
    one.subscribe(["t"], on_assign=broken, on_revoke=broken)
    results: list[Any] = []
    for _ in range(200):
        result = attempt(lambda: one.poll(0.05))
        results += [result] if isinstance(result, Raised) else ["record"] if result is not None else []
        if "record" in results:
            break
    return [results, attempt(one.close), attempt(one.close), attempt(lambda: one.poll(0))]


@case
def a_callback_that_exits(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """sys.exit() in a callback comes out of poll, and the consumer can be closed."""

    def leave(*_: object) -> None:
        raise SystemExit(3)

    one = bench.make()
    one.subscribe(["t"], on_assign=leave)
    try:
        for _ in range(200):
            one.poll(0.05)
    except SystemExit as error:
        return [error.code, one.close()]
    return "never"


@case
def on_assign_says_where_to_begin(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """assign() with offsets, in the callback."""

    def begin(one: Any, partitions: Any) -> None:  # noqa: ANN401 -- either kind
        for partition in partitions:
            partition.offset = 45
        one.assign(partitions)

    one = bench.make()
    one.subscribe(["t"], on_assign=begin)
    return read(one, 15)


@case
def errors_of_topics_are_messages(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Unknown, without rights, and a pattern without a topic, each once; records of others are delivered."""
    one = bench.make(**SHORT)
    one.subscribe(["t", "nosuch", "^zz"])
    found = messages(one, errors=2, records=3 * RECORDS)
    one.subscribe(["secret"])
    return [found, messages(one, errors=1, records=0)]


@case
def a_name_that_no_topic_can_have(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """An error of that topic; the others are read. The code is the broker's; the mock calls the name unknown."""
    one = bench.make()
    one.subscribe(["t", "bad topic"])
    return [(topic, text and len(text) > 0) for topic, _, text in messages(one, errors=1, records=3 * RECORDS)]


@case
def other_threads_may_call(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """While one thread polls, another one commits, seeks, pauses, asks and closes."""
    one, found = bench.joined()
    first = next(m for m in found if m.partition() == 0)
    one.pause(one.assignment())
    results: list[Any] = []

    def other() -> None:
        for call in (
            lambda: plain(one.commit(first, asynchronous=False)),
            lambda: one.seek(at(0, 3)),
            lambda: one.pause(one.assignment()),
            lambda: len(one.position(one.assignment())),
            lambda: len(one.committed([at(0)], 10)),
            lambda: one.poll(0),
            one.close,
        ):
            results.append(attempt(call))  # noqa: PERF401 -- one.close ends the other loop

    thread = threading.Thread(target=other)
    polled = [one.poll(0.1)]
    thread.start()
    while thread.is_alive():
        polled.append(attempt(lambda: one.poll(0.05)))
    thread.join()
    return [results, {message for message in polled if not isinstance(message, Raised)}]


@case
def a_logger(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """Librdkafka logs to it."""
    seen: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    logger = logging.Logger("test")  # noqa: LOG001 -- no part of the tree of loggers
    logger.addHandler(Kept())
    one = bench.make(debug="cgrp", log_level=7, logger=logger)
    one.subscribe(["t"])
    until = time.monotonic() + 10
    while not seen and time.monotonic() < until:
        one.poll(0.05)
    return bool(seen)


@case
def statistics_reach_their_callback(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """stats_cb is called in poll."""
    seen: list[str] = []
    one = bench.make(**{"statistics.interval.ms": 50, "stats_cb": seen.append})
    until = time.monotonic() + 10
    while not seen and time.monotonic() < until:
        one.poll(0.05)
    return bool(seen)


@case
def a_context_manager(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """It is closed at the end."""
    with bench.make() as one:
        pass
    return attempt(lambda: one.poll(0))


def read(one: Any, count: int) -> list[tuple[int, int]]:  # noqa: ANN401 -- either kind
    """So many records, in order of partitions."""
    found: list[Any] = []
    until = time.monotonic() + 20
    while len(found) < count:
        assert time.monotonic() < until, f"{len(found)} of {count}"
        found += one.consume(count - len(found), 0.1)
    return sorted((m.partition(), m.offset()) for m in found)


def messages(one: Any, errors: int, records: int) -> list[tuple[str, int, str]]:  # noqa: ANN401 -- either kind
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


def outcome(body: Case, cluster: MockCluster, kind: type) -> Any:  # noqa: ANN401 -- as the case
    """The result of a case with one kind of consumer."""
    bench = Bench(cluster, kind)
    try:
        return body(bench)
    finally:
        bench.close()


@pytest.mark.parametrize("name", sorted(CASES))
def test_both_consumers_do_the_same(cluster: MockCluster, name: str) -> None:
    """A program changes its class, and nothing else."""
    bare, ours = (outcome(CASES[name], cluster, kind) for kind in (Consumer, GroupConsumer))
    assert alike(bare, ours), f"bare: {bare!r}\nours: {ours!r}"


def test_every_public_method_of_the_bare_consumer_is_there() -> None:
    """And each is called in the case of calls after close."""
    public = {name for name in dir(Consumer) if not name.startswith("_")}
    assert public <= set(dir(GroupConsumer))
    assert public == set(_AFTER_CLOSE)


def test_a_child_process_is_refused_and_ends(cluster: MockCluster) -> None:
    """After a fork no thread of either client runs in the child: it would deliver records twice, or hang."""
    bench = Bench(cluster, GroupConsumer)
    one, _ = bench.joined(records=10)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        results = [type(attempt(lambda: one.poll(1)).error).__name__, type(attempt(one.assignment).error).__name__]
        one.close()
        os.write(writing, " ".join(results).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(writing)
    assert os.read(reading, 1000).decode() == "ClosedConsumerError ClosedConsumerError"
    os.close(reading)
    assert len(read(one, 3 * RECORDS - 10)) == 3 * RECORDS - 10
    bench.close()
