"""Walks through every method of confluent_kafka.Consumer, with each of its calls, in each state of a consumer.

The states are made with a topic `t` of three partitions with records, as in `bare_bench`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message
from confluent_kafka import TopicPartition as Partition

from assignors import GroupConsumer
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, Raised, Servers, at, attempt, read
from tests.unit.assignors.consumer.intended_differences import Outcome
from tests.unit.assignors.consumer.surface_calls import CHANGING, calls_of

PROTOCOLS: Final = ("classic", "consumer")


def new(bench: Bench) -> Any:
    """A consumer without a subscription."""
    return bench.make(**SHORT)


def subscribed(bench: Bench) -> Any:
    """A consumer that has not polled since its subscription."""
    one = new(bench)
    one.subscribe(["t"])
    return one


def assigned(bench: Bench) -> Any:
    """A consumer that has read all records."""
    return bench.joined(**SHORT)[0]


def storing(bench: Bench) -> Any:
    """A consumer that has read all records, and stores none by itself."""
    return bench.joined(**SHORT, **{"enable.auto.offset.store": False})[0]


def by_hand(bench: Bench) -> Any:
    """A consumer that has read all records of partitions of its own choice."""
    one = new(bench)
    one.assign([at(0, OFFSET_BEGINNING), at(1, OFFSET_BEGINNING)])
    read(one, 2 * RECORDS)
    return one


def unsubscribed(bench: Bench) -> Any:
    """A consumer that was assigned."""
    one = assigned(bench)
    one.unsubscribe()
    one.poll(0.05)
    return one


def closed(bench: Bench) -> Any:
    """A consumer that was assigned."""
    one = assigned(bench)
    one.close()
    return one


STATES: Final[Mapping[str, Callable[[Bench], Any]]] = {
    one.__name__: one for one in (new, subscribed, assigned, storing, by_hand, unsubscribed, closed)
}


def seen(result: Any) -> Any:
    """What a program can rely on, without what differs from run to run."""
    if isinstance(result, list):
        return [seen(one) for one in result]
    if isinstance(result, Partition):
        return (
            result.topic,
            result.partition,
            result.offset,
            result.metadata or "",
            result.error and result.error.code(),
        )
    if isinstance(result, Message):
        error = result.error()
        return ("message", error and error.code())
    if isinstance(result, str | bytes):
        return (type(result).__name__, bool(result))
    if topics := getattr(result, "topics", None):
        return sorted((name, one.error and one.error.code(), len(one.partitions)) for name, one in topics.items())
    return (
        result if result is None or isinstance(result, Raised | bool | int | float | tuple) else type(result).__name__
    )


class Pair(NamedTuple):
    """The bare client and ours, and the `group.protocol` of both."""

    bare: type = Consumer
    ours: type = GroupConsumer
    protocol: str = "classic"


CLASSIC: Final = Pair()


# States, with their protocols, in which `incremental_unassign` of a partition that comes twice ends the bare client.
_FATAL: Final = frozenset(
    {("by_hand", "classic"), ("by_hand", "consumer"), ("assigned", "consumer"), ("storing", "consumer")}
)


def _give_back(one: Any, state: str, method: str) -> None:
    """Undo what keeps the bare client from leaving its group where the broker assigns.

    Librdkafka adds each assignment to the present partitions and takes each revocation from these. If it cannot,
    because the program has chosen others, `close()` waits for ever.
    """
    if (state, method) == ("by_hand", "subscribe"):
        attempt(lambda: one.incremental_unassign(one.assignment()))
    if state in {"assigned", "storing"} and method == "incremental_unassign":
        read_now = {part.partition for part in one.assignment()}
        attempt(lambda: one.incremental_assign([at(number) for number in range(3) if number not in read_now]))


def walk(
    cluster: Servers,
    state: str,
    method: str,
    *,
    thorough: bool = True,
    pair: Pair = CLASSIC,
) -> Iterator[Outcome]:
    """Make each call of a method in one state with both consumers.

    Args:
        cluster: has the topics of the cases.
        state: one of `STATES`.
        method: one of `surface_calls.METHODS`.
        thorough: with a new consumer for each call that may change its state; else only usual arguments of those.
        pair: the bare client and ours, and their protocol.
    """
    changes = method in CHANGING
    # These end the process of the bare client, in an assertion of librdkafka.
    unassigns = method == "incremental_unassign" and (state, pair.protocol) in _FATAL
    fatal = {"partitions: twice the same"} if unassigns else set()
    made_calls = [
        call
        for call in calls_of(method)
        if call.label not in fatal and (thorough or not changes or call.label == "usual")
    ]
    found = []
    for kind in (pair.bare, pair.ours):
        bench = Bench(cluster, kind, pair.protocol)
        one: Any = None
        results = []
        for call in made_calls:
            if one is None or changes:
                bench.close()
                one = STATES[state](bench)
            results.append(seen(call.on(one)))
            if changes and kind is pair.bare and pair.protocol == "consumer":
                _give_back(one, state, method)
        bench.close()
        found.append(results)
    for call, bare, ours in zip(made_calls, *found, strict=True):
        yield Outcome(state, call, bare, ours, pair.protocol)
