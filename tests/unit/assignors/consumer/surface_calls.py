"""The calls of a walk: each method of confluent_kafka.Consumer, with each kind of argument."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    Message,
)
from confluent_kafka import TopicPartition as Partition

from tests.unit.assignors.consumer.bare_bench import at, attempt

_SOON_S: Final = 5.0


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
    "seconds": {"usual": _SOON_S, "whole": 5, "true": True, "text of a number": "5"},
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

    def on(self, consumer: Any) -> Any:
        """The result, or the error."""
        args = [made(one) for one in self.args]
        kwargs = {name: made(one) for name, one in (self.kwargs or {}).items()}
        return attempt(lambda: getattr(consumer, self.method)(*args, **kwargs))


def made(value: Any) -> Any:
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
