"""Where GroupConsumer differs from the bare client on purpose, and what both did with a call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import (
    KafkaError,
    KafkaException,
)

from assignors.errors import MembershipError, NotOwnedError
from tests.unit.assignors.consumer.bare_bench import Raised, alike
from tests.unit.assignors.consumer.surface_calls import Call


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


def reason(outcome: Outcome) -> str | None:
    """The intended difference that explains this one; None if there is none."""
    return next((name for name, explains in INTENDED.items() if explains(outcome)), None)
