"""Makes each call of confluent_kafka.Consumer inside each of its callbacks, with both consumers."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, ThrottleEvent

from assignors import GroupConsumer
from assignors.consumer.consumer_errors import ConsumerError
from assignors.errors import NotOwnedError
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, Servers
from tests.unit.assignors.consumer.intended_differences import INCREMENTAL, WHOLE, Outcome
from tests.unit.assignors.consumer.surface_calls import Call, calls_of
from tests.unit.assignors.consumer.surface_walk import seen

_CALLED_S: Final = 20.0
HUNG: Final = "the call does not return"
Inside = Callable[..., None]


def poll_until(one: Any, called: threading.Event) -> None:
    """Poll until the callback was called; what it does may close the consumer."""
    until = time.monotonic() + _CALLED_S
    while not called.is_set() and time.monotonic() < until:
        try:
            one.poll(0.02)
        except RuntimeError:  # closed
            assert called.is_set()


def in_on_assign(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """Of the first assignment."""
    one = bench.make(**SHORT)
    one.subscribe(["t"], on_assign=lambda own, _: inside(own))
    poll_until(one, called)


def in_on_revoke(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """When the subscription ends."""
    one, _ = bench.joined(on_revoke=lambda own, _: inside(own), **SHORT)
    one.unsubscribe()
    poll_until(one, called)


def in_on_lost(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """After max.poll.interval.ms without a poll."""
    late = {"max.poll.interval.ms": 1_000}
    one, _ = bench.joined(on_lost=lambda own, _: inside(own), **SHORT, **late)
    late_at = time.monotonic() + 1.5  # nothing else shows that the interval has passed: a look at it is a poll
    while time.monotonic() < late_at:
        threading.Event().wait(0.1)
    poll_until(one, called)


def in_on_commit(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """Of an asynchronous commit."""
    made: list[Any] = []
    one, _ = bench.joined(on_commit=lambda *_: inside(made[0]), **SHORT)
    made.append(one)
    one.commit()
    poll_until(one, called)


def in_stats_cb(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """Of a report of statistics.

    The next report has to come after the call that is made inside of this one, however slow the machine is: an
    assertion of the bare client ends the process if another callback comes in the same call of the client.
    """
    made: list[Any] = []
    report: dict[str, Any] = {"statistics.interval.ms": 500, "stats_cb": lambda _: inside(made[0]) if made else None}
    one, _ = bench.joined(**report, **SHORT)
    made.append(one)
    poll_until(one, called)


def in_error_cb(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """Of a broker that is away, whose errors come at chance."""
    _in_event(bench, inside, called, "error_cb", KafkaError(KafkaError._TRANSPORT))


def in_throttle_cb(bench: Bench, inside: Inside, called: threading.Event) -> None:
    """Of a broker that throttles, which a mock does not."""
    _in_event(bench, inside, called, "throttle_cb", ThrottleEvent("broker", 1, 0.5))


def _in_event(bench: Bench, inside: Inside, called: threading.Event, name: str, event: object) -> None:
    """Pass the event to GroupConsumer as its client does.

    With the bare client stats_cb stands in, which librdkafka calls in the same place.
    """
    if bench.kind is Consumer:
        in_stats_cb(bench, inside, called)
        return
    made: list[Any] = []
    callback: dict[str, Any] = {name: lambda _: inside(made[0])}
    one, _ = bench.joined(**callback, **SHORT)
    made.append(one)
    one._kafka_azimuth.fetching._config[name](event)
    poll_until(one, called)


CALLBACKS: Final[Mapping[str, Callable[[Bench, Inside, threading.Event], None]]] = {
    one.__name__: one
    for one in (in_on_assign, in_on_revoke, in_on_lost, in_on_commit, in_stats_cb, in_error_cb, in_throttle_cb)
}


def usual_call_of(method: str) -> Call:
    """The call of a method with usual arguments."""
    return next(call for call in calls_of(method) if call.label == "usual")


def result_inside(bench: Bench, callback: str, call: Call) -> Any:
    """What a call does inside a callback; HUNG if it does not return."""
    results: list[Any] = []
    called = threading.Event()

    def inside(one: Any) -> None:
        if not results:
            results.append(HUNG)
            results[0] = seen(call.on(one))
            called.set()

    def run() -> None:
        CALLBACKS[callback](bench, inside, called)
        bench.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(2 * _CALLED_S)
    assert results, f"{callback} was not called"
    return results[0] if not thread.is_alive() else [results[0], HUNG]


def walk_inside(
    cluster: Servers, callback: str, methods: Iterable[str], protocol: str = "classic"
) -> Iterator[Outcome]:
    """Make the usual call of each method inside a callback, with both kinds of consumer."""
    for method in methods:
        call = usual_call_of(method)
        # The bare client's call, or its later close(), does not return, or ends the process.
        hangs = (callback, method) in HANGING or (protocol == "consumer" and (callback, method) in _HANGING_IN_CONSUMER)
        bare = HUNG if hangs else result_inside(Bench(cluster, Consumer, protocol), callback, call)
        ours = result_inside(Bench(cluster, GroupConsumer, protocol), callback, call)
        yield Outcome(callback, call, bare, ours, protocol)


_REBALANCES: Final = frozenset({"in_on_assign", "in_on_revoke", "in_on_lost"})
_OF_CLIENT: Final = frozenset({"in_stats_cb", "in_error_cb", "in_throttle_cb"})
HANGING: Final = frozenset(
    {
        *itertools.product(["in_on_revoke"], ["assign", "close", "incremental_assign", "incremental_unassign"]),
        *itertools.product(["in_on_lost"], ["close", "incremental_assign", "incremental_unassign"]),
        ("in_on_commit", "close"),
        # An assertion ends the process if another callback comes in the call of the client that runs this one.
        *itertools.product(_OF_CLIENT, ["close", "consume", "list_topics", "poll"]),
    }
)
# The same where the broker assigns.
_HANGING_IN_CONSUMER: Final = frozenset(
    {
        *itertools.product(["in_on_assign"], ["assign", "incremental_assign", "incremental_unassign"]),
        ("in_on_lost", "assign"),
        *itertools.product(_REBALANCES, ["unassign"]),
        *itertools.product(["in_on_commit", *_OF_CLIENT], ["incremental_unassign"]),
        *itertools.product(["in_on_lost"], ["cluster_id", "consume", "list_topics", "poll", "set_sasl_credentials"]),
    }
)
# Where the two differ on purpose: GroupConsumer's docstring has the reasons.
INTENDED: Final[Mapping[str, Callable[[Outcome], bool]]] = {
    "a call that would wait for the return of the callback that makes it is refused": lambda it: (
        it.state in _REBALANCES
        and it.call.method in {"close", "consume", "poll", "subscribe", "unsubscribe"}
        and it.ours_raises(ConsumerError)
    ),
    "assign and its relatives are accepted in each protocol": lambda it: (
        it.call.method in (INCREMENTAL if it.protocol == "classic" else WHOLE) and it.code() == KafkaError._STATE
    ),
    "seek in on_assign says where a partition begins": lambda it: (
        (it.state, it.call.method) == ("in_on_assign", "seek") and it.ours is None
    ),
    "what is taken away cannot be assigned, nor committed when it is lost": lambda it: (
        ((it.state, it.call.method) == ("in_on_lost", "assign") and it.ours_raises(ConsumerError))
        or ((it.state, it.call.method) == ("in_on_lost", "commit") and it.ours_raises(NotOwnedError))
    ),
    "librdkafka forgets the id of a member that was lost, kafka-python keeps it until the next join": lambda it: (
        (it.state, it.call.method) == ("in_on_lost", "memberid") and it.bare is None
    ),
    "what hangs in the bare client, or ends its process, returns": lambda it: it.bare == HUNG and it.ours != HUNG,
}


def reason_inside(outcome: Outcome) -> str | None:
    """The intended difference that explains this one; None if there is none."""
    return next((name for name, explains in INTENDED.items() if explains(outcome)), None)
