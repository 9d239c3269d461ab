"""The input of a plan: topics and members, as values."""

import math
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from assignors.errors import GroupError, TopicError, WeightError

TopicPartition = tuple[str, int]

_MOST_PARTITIONS: Final = (1 << 31) - 1  # Kafka numbers them with 32 bits


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that can be read.

    Attributes:
        name: its name in Kafka.
        partitions: their number, 0 or more.
        racks: for each partition the racks of its replicas; an empty set or None means unknown. None: all unknown.
        leaders: for each partition the rack of its leader, None if unknown. None: all unknown.
        id: Kafka's topic id, if known. Not used by the planner.

    Raises:
        TopicError: partitions negative, not whole or above 2,147,483,647, racks or leaders for another number of
            partitions, or a name that is not text.
    """

    name: str
    partitions: int
    racks: Sequence[frozenset[str] | None] | None = None
    leaders: Sequence[str | None] | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if not _is_text(self.name):
            raise TopicError(f"topic {self.name!r}: need a text as its name")
        try:
            fits = 0 <= operator.index(self.partitions) <= _MOST_PARTITIONS
        except TypeError:  # text, None, 1.5
            fits = False
        if not fits:
            raise TopicError(
                f"topic {self.name!r}: partitions={self.partitions!r}, need a whole number, 0 to {_MOST_PARTITIONS}"
            )
        for what, given in (("racks", self.racks), ("leaders", self.leaders)):
            if given is not None and len(given) != self.partitions:
                raise TopicError(
                    f"topic {self.name!r}: {what} of {len(given)} partitions given, it has {self.partitions}; "
                    "give one entry for each (an empty set or None where unknown)"
                )


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer that takes part in the group.

    Attributes:
        id: the broker's member id, new at each join.
        topics: names that it subscribes to.
        rack: its rack, None if unknown.
        weight: capacity relative to the other members, above 0.
        owned: claims: partitions that it claims to own. A hint, which the planner checks.
        generation: the generation of the claims, -1 if unknown (KIP-792).
        instance: identity that survives a restart: group.instance.id, or the agent's name.

    Raises:
        WeightError: the weight is not a finite number above 0.
        GroupError: the id or the instance is not text, or an attribute has the wrong type.
    """

    id: str
    topics: frozenset[str]
    rack: str | None = None
    weight: float = 1.0
    owned: frozenset[TopicPartition] = field(default=frozenset())
    generation: int = -1
    instance: str | None = None

    def __post_init__(self) -> None:
        try:
            fits = self.weight > 0 and math.isfinite(self.weight)
        except (TypeError, OverflowError):  # text, None; a whole number beyond any float
            fits = False
        if not fits:
            raise WeightError(f"member {self.id!r}: weight={self.weight!r}, need a finite number above 0")
        if not _is_text(self.id) or not (self.instance is None or _is_text(self.instance)):
            raise GroupError(f"member {self.id!r}, instance {self.instance!r}: need texts")
        for name, given in (("topics", self.topics), ("owned", self.owned)):
            # A text is a collection of letters, too, and each would be a topic's name.
            if isinstance(given, str | bytes) or not isinstance(given, Collection):
                raise GroupError(f"member {self.id!r}: {name}={given!r}, need a frozenset")
        try:
            operator.index(self.generation)
        except TypeError as error:
            raise GroupError(f"member {self.id!r}: generation={self.generation!r}, need a whole number") from error

    @property
    def identity(self) -> str:
        """The name that ranks the member."""
        return self.instance or self.id


def _is_text(name: object) -> bool:
    """Return whether it can be hashed: the hash takes bytes that are no UTF-8 as surrogates, but no other halves."""
    if not isinstance(name, str):
        return False
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
