"""Walks through every method of confluent_kafka.Consumer, with each kind of argument, in each state of a consumer.

The states are made with a topic `t` of three partitions with records, as in `bare_bench`.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Partition

from assignors import GroupConsumer
from assignors.errors import MembershipError, NotOwnedError
from tests.unit.assignors.conftest import RECORDS
from tests.unit.assignors.consumer.bare_bench import SHORT, Bench, Raised, Servers, alike, at, attempt, read

SOON_S: Final = 5.0
PROTOCOLS: Final = ("classic", "consumer")

# What each method takes, in the order of its parameters: a name, and a kind of `VALUES`.
METHODS: Final[Mapping[str, Mapping[str, str]]] = {
    "assign": {"partitions": "partitions"},
    "assignment": {},
    "close": {},
    "cluster_id": {"timeout": "seconds"},
    "commit": {"message": "message", "offsets": "offsets", "asynchronous": "truth"},
    "committed": {"partitions": "partitions", "timeout": "seconds"},
    "consume": {"num_messages": "count", "timeout": "moment"},
    "consumer_group_metadata": {},
    "get_watermark_offsets": {"partition": "partition", "timeout": "seconds", "cached": "truth"},
    "incremental_assign": {"partitions": "partitions"},
    "incremental_unassign": {"partitions": "partitions"},
    "list_topics": {"topic": "topic", "timeout": "seconds"},
    "memberid": {},
    "offsets_for_times": {"partitions": "partitions", "timeout": "seconds"},
    "pause": {"partitions": "partitions"},
    "poll": {"timeout": "moment"},
    "position": {"partitions": "partitions"},
    "resume": {"partitions": "partitions"},
    "seek": {"partition": "partition"},
    "set_sasl_credentials": {"username": "text", "password": "text"},
    "store_offsets": {"message": "message", "offsets": "offsets"},
    "subscribe": {"topics": "topics", "on_assign": "callback", "on_revoke": "callback", "on_lost": "callback"},
    "unassign": {},
    "unsubscribe": {},
}
REQUIRED: Final = {"topics", "partitions", "partition", "username", "password"}
CHANGING: Final = frozenset(
    {
        "assign",
        "close",
        "incremental_assign",
        "incremental_unassign",
        "seek",
        "set_sasl_credentials",
        "subscribe",
        "unassign",
        "unsubscribe",
    }
)

# Values of other types, which every kind refuses or reads as its own.
_FOREIGN: Final[Mapping[str, Any]] = {
    "None": None,
    "a text": "x",
    "bytes": b"x",
    "a number": 5,
    "a fraction": 1.5,
    "a list": [],
    "a dict": {},
    "a set of a number": {1},
    "an object": object(),
}
VALUES: Final[Mapping[str, Mapping[str, Any]]] = {
    "seconds": {"usual": SOON_S, "whole": 5, "true": True, "text of a number": "5"},
    "moment": {"usual": 0.01, "zero": 0, "true": False, "text of a number": "0.01", "minus zero": -0.0},
    "truth": {"usual": False, "true": True, "zero": 0, "one": 1},
    "count": {"usual": 1, "zero": 0, "true": True, "negative": -1, "too many": 1_000_001, "huge": 1 << 70},
    "text": {"usual": "me", "empty": "", "null": "a\0b", "other letters": "ü", "half a letter": "\ud800"},
    "topic": {
        "usual": "t",
        "unknown": "nosuch",
        "refused": "secret",
        "empty": "",
        "null": "a\0b",
        "no topic's name": "a b",
        "half a letter": "\ud800",
    },
    "topics": {
        "usual": ["t"],
        "two": ["t", "u"],
        "twice the same": ["t", "t"],
        "unknown": ["nosuch"],
        "pattern": ["^t"],
        "broken pattern": ["^("],
        "empty name": [""],
        "a name and an empty one": ["t", ""],
        "null": ["a\0b"],
        "numbers": [1],
        "none": [None],
        "bytes in a list": [b"t"],
        "a partition": [at(0)],
        "tuple": ("t",),
        "generator": lambda: (one for one in ["t"]),
        "long name": ["x" * 300],
    },
    "callback": {"usual": lambda *_: None},
    "partition": {
        "usual": at(0, 1),
        "no offset": at(0),
        "last": at(2, 50),
        "after the end": at(0, 10_000),
        "beginning": at(0, OFFSET_BEGINNING),
        "end": at(0, OFFSET_END),
        "stored": at(0, OFFSET_STORED),
        "negative offset": at(0, -7),
        "no such number": at(9, 1),
        "negative number": at(-1, 1),
        "very negative number": at(-5, 1),
        "unknown topic": Partition("nosuch", 0, 1),
        "empty topic": Partition("", 0, 1),
        "in a list": [at(0, 1)],
        "tuple": ("t", 0, 1),
    },
    "partitions": {
        "usual": [at(0, 1)],
        "all": [at(number, 2) for number in range(3)],
        "no offset": [at(0)],
        "backwards": [at(2, 3), at(1, 2), at(0, 1)],
        "twice the same": [at(0, 1), at(0, 2)],
        "beginning": [at(0, OFFSET_BEGINNING)],
        "end": [at(0, OFFSET_END)],
        "invalid": [at(0, OFFSET_INVALID)],
        "negative offset": [at(0, -7)],
        "after the end": [at(0, 10_000)],
        "metadata": [at(0, 1, metadata="note")],
        "no such number": [at(9, 1)],
        "negative number": [at(-1, 1)],
        "very negative number": [at(-5, 1)],
        "unknown topic": [Partition("nosuch", 0, 1)],
        "empty topic": [Partition("", 0, 1)],
        "one of another topic": [at(0, 1), Partition("nosuch", 0, 1)],
        "one": at(0, 1),
        "numbers": [1],
        "none": [None],
        "texts": ["t"],
        "tuple": (at(0, 1),),
        "generator": lambda: (one for one in [at(0, 1)]),
    },
    "message": {
        "usual": None,
        "record": lambda: Message(topic="t", partition=0, offset=4),
        "record of another topic": lambda: Message(topic="nosuch", partition=0, offset=4),
        "record without an offset": lambda: Message(topic="t", partition=0),
        "record without a partition": lambda: Message(topic="t", offset=4),
    },
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call: a method, the label of its arguments, and these."""

    method: str
    label: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name in a report."""
        return f"{self.method}({self.label})"

    def on(self, consumer: Any) -> Any:  # noqa: ANN401 -- either kind, any result
        """The result, or the error."""
        args = [made(one) for one in self.args]
        kwargs = {name: made(one) for name, one in (self.kwargs or {}).items()}
        return attempt(lambda: getattr(consumer, self.method)(*args, **kwargs))


def made(value: Any) -> Any:  # noqa: ANN401 -- any argument
    """The value, or what its factory makes: generators are used up, and librdkafka writes into partitions."""
    return value() if getattr(value, "__name__", "") == "<lambda>" and not value.__code__.co_varnames else value


def values_of(kind: str) -> dict[str, Any]:
    """The values of a kind by label, the usual one first."""
    return {**VALUES["partitions" if kind == "offsets" else kind], **_FOREIGN}


def calls_of(method: str) -> Iterator[Call]:
    """Each value of each parameter, beside usual ones; then other numbers and names of arguments."""
    parameters = METHODS[method]
    usual = {name: values_of(kind)["usual"] for name, kind in parameters.items()}
    if method in {"commit", "store_offsets"}:
        usual.pop("message")
    yield usual_call(method, "by name", usual, by_name=True)
    yield usual_call(method, "usual", usual)
    for name, kind in parameters.items():
        for label, value in values_of(kind).items():
            others = {one: had for one, had in usual.items() if {one, name} != {"message", "offsets"}}
            yield usual_call(method, f"{name}: {label}", {**others, name: value})
    positional = list(itertools.takewhile(usual.__contains__, parameters))
    yield Call(method, "by position", tuple(usual[name] for name in positional))
    yield Call(method, "one too many", (*(usual.get(name) for name in parameters), 1))
    yield Call(method, "no such name", (), {**usual, "nosuch": 1})
    if method not in {"poll", "consume"}:
        for name in parameters.keys() & REQUIRED:
            yield Call(method, f"without {name}", (), {one: value for one, value in usual.items() if one != name})
        if "timeout" in parameters:
            yield Call(method, "without timeout", (), {k: v for k, v in usual.items() if k != "timeout"})


def usual_call(method: str, label: str, given: Mapping[str, Any], *, by_name: bool = False) -> Call:
    """Required arguments by position, as the bare client wants some of them."""
    first = () if by_name else tuple(value for name, value in given.items() if name in REQUIRED)
    return Call(method, label, first, {k: v for k, v in given.items() if by_name or k not in REQUIRED})


def new(bench: Bench) -> Any:  # noqa: ANN401 -- either kind
    """A consumer without a subscription."""
    return bench.make(**SHORT)


def subscribed(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """A consumer that has not polled since its subscription."""
    one = new(bench)
    one.subscribe(["t"])
    return one


def assigned(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """A consumer that has read all records."""
    return bench.joined(**SHORT)[0]


def storing(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """A consumer that has read all records, and stores none by itself."""
    return bench.joined(**SHORT, **{"enable.auto.offset.store": False})[0]


def by_hand(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """A consumer that has read all records of partitions of its own choice."""
    one = new(bench)
    one.assign([at(0, OFFSET_BEGINNING), at(1, OFFSET_BEGINNING)])
    read(one, 2 * RECORDS)
    return one


def unsubscribed(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """A consumer that was assigned."""
    one = assigned(bench)
    one.unsubscribe()
    one.poll(0.05)
    return one


def closed(bench: Bench) -> Any:  # noqa: ANN401 -- as above
    """A consumer that was assigned."""
    one = assigned(bench)
    one.close()
    return one


STATES: Final[Mapping[str, Callable[[Bench], Any]]] = {
    one.__name__: one for one in (new, subscribed, assigned, storing, by_hand, unsubscribed, closed)
}


def seen(result: Any) -> Any:  # noqa: ANN401 -- whatever a call returns
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What both consumers did with one call in one state."""

    state: str
    call: Call
    bare: Any
    ours: Any
    protocol: str = "classic"

    def __str__(self) -> str:
        return f"{self.state}: {self.call.name}\n    bare: {self.bare!r}\n    ours: {self.ours!r}"

    @property
    def alike(self) -> bool:
        """Whether a program sees the same."""
        return alike(self.bare, self.ours)

    def bare_raises(self, kind: type[Exception]) -> bool:
        """Whether the bare client raises such an error."""
        return isinstance(self.bare, Raised) and isinstance(self.bare.error, kind)

    def ours_raises(self, kind: type[Exception]) -> bool:
        """Whether GroupConsumer raises such an error."""
        return isinstance(self.ours, Raised) and isinstance(self.ours.error, kind)

    def code(self) -> int | None:
        """The code of the bare client's error."""
        return self.bare.error.args[0].code() if self.bare_raises(KafkaException) else None


class Pair(NamedTuple):
    """The bare client and ours, and the `group.protocol` of both."""

    bare: type = Consumer
    ours: type = GroupConsumer
    protocol: str = "classic"


CLASSIC: Final = Pair()
IN_A_GROUP: Final = frozenset({"subscribed", "assigned", "storing"})
INCREMENTAL: Final = frozenset({"incremental_assign", "incremental_unassign"})
WHOLE: Final = frozenset({"assign", "unassign"})
_ITERABLES: Final = ("tuple", "generator", "a dict")

# Where the two differ on purpose: GroupConsumer's docstring has the reasons that programs should know.
INTENDED: Final[Mapping[str, Callable[[Outcome], bool]]] = {
    "any iterable of partitions or names is accepted": lambda it: (
        it.call.label.endswith(_ITERABLES) and it.bare_raises(TypeError) and not it.ours_raises(AttributeError)
    ),
    "arguments too many, or with a name where the bare client takes none": lambda it: (
        (it.call.label in {"one too many", "no such name"} and it.ours_raises(TypeError))
        or (it.call.label == "by name" and it.bare_raises(TypeError))
    ),
    "a closed consumer refuses each call as closed, whatever its arguments are": lambda it: (
        it.state == "closed" and it.ours_raises(RuntimeError) and isinstance(it.bare, Raised)
    ),
    "an empty commit is no error": lambda it: (
        it.call.method == "commit" and it.code() == KafkaError._NO_OFFSET and it.ours == []
    ),
    "a commit of what is not owned is refused without a request": lambda it: (
        it.call.method == "commit" and it.state in IN_A_GROUP and it.ours_raises(NotOwnedError)
    ),
    "a commit before the member has joined waits for it": lambda it: (
        it.call.method == "commit"
        and it.state == "subscribed"
        and it.code() in {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.STALE_MEMBER_EPOCH}
    ),
    "a commit of the progress lists partitions that are committed already": lambda it: (
        it.call.method == "commit" and it.call.label in {"message: None", "offsets: None"} and isinstance(it.ours, list)
    ),
    "of two offsets of a partition the last one is committed, and returned": lambda it: (
        it.call.method == "commit" and it.call.label.endswith("twice the same") and isinstance(it.ours, list)
    ),
    "with a subscription only partitions of this member are assigned": lambda it: (
        it.call.method in {"assign", "incremental_assign"}
        and it.state in IN_A_GROUP
        and it.ours_raises(MembershipError)
    ),
    "each of these calls is accepted in each protocol": lambda it: (
        it.call.method in (INCREMENTAL if it.protocol == "classic" else WHOLE)
        and it.state in IN_A_GROUP
        and it.code() == KafkaError._STATE
    ),
    "names of topics are texts, and may come twice": lambda it: (
        it.call.method == "subscribe" and (it.ours_raises(TypeError) or it.call.label == "topics: twice the same")
    ),
    "None is no callback": lambda it: (
        it.call.method == "subscribe" and it.call.label.endswith(": None") and not it.ours
    ),
    "the bare client takes a huge count as another number": lambda it: it.call.label == "num_messages: huge",
    "a record that was fetched before is returned without a look at the timeout": lambda it: (
        it.call.method in {"poll", "consume"} and it.bare_raises(TypeError) and not isinstance(it.ours, Raised)
    ),
    "the first records come as soon as the member has joined": lambda it: (
        it.call.method in {"poll", "consume"}
        and it.state == "subscribed"
        and not isinstance(it.bare, Raised)
        and not isinstance(it.ours, Raised)
    ),
    "an offset below 0 that is no constant is refused": lambda it: (
        it.call.method == "seek" and it.call.label == "partition: negative offset"
    ),
    "nothing is stored if one of the partitions is not assigned, or a record has no offset": lambda it: (
        it.call.method == "store_offsets"
        and it.bare is None
        and ("another topic" in it.call.label or it.call.label == "message: record without an offset")
    ),
    "after a subscription the bare client keeps its protocol and its partitions": lambda it: (
        it.state == "unsubscribed"
        and it.call.method in {"seek", *(INCREMENTAL if it.protocol == "classic" else WHOLE)}
        and it.bare_raises(KafkaException)
    ),
    "the mock names each partition that it does not know, brokers do not": lambda it: (
        it.call.method == "committed" and it.ours == [(*one[:4], None) for one in it.bare]
    ),
    "where the broker assigns, librdkafka makes up its id before it joins, and keeps it": lambda it: (
        it.call.method == "memberid"
        and it.protocol == "consumer"
        and it.state not in {"assigned", "storing"}
        and it.ours is None
    ),
}

# States, with their protocols, in which `incremental_unassign` of a partition that comes twice ends the bare client.
_FATAL: Final = frozenset(
    {("by_hand", "classic"), ("by_hand", "consumer"), ("assigned", "consumer"), ("storing", "consumer")}
)


def _give_back(one: Any, state: str, method: str) -> None:  # noqa: ANN401 -- either kind of bare client
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
        method: one of `METHODS`.
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


def reason(outcome: Outcome) -> str | None:
    """The intended difference that explains this one; None if there is none."""
    return next((name for name, explains in INTENDED.items() if explains(outcome)), None)
