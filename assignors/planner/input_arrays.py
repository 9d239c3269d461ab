"""The planner's input as arrays: topics and members in one fixed order, claims checked."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assignors.errors import TopicError
from assignors.hashing.hash import U64, hash64s
from assignors.planner.topics_and_members import Member, Topic

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_OWNER = -1
SEVERAL_CLAIMANTS = -2
_HEAVIEST = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Topics sorted by name, members by identity, partitions numbered through.

    Attributes:
        topics: sorted by name.
        members: sorted by identity, then id.
        first: number of the first partition of each topic, shape (T + 1,).
        owner: member that holds a valid claim on each partition, or NO_OWNER, shape (P,).
        claimant: the only member with any claim on it, valid or not; NO_OWNER; or SEVERAL_CLAIMANTS; shape (P,).
        group_of: subscription group of each member, shape (M,): equal subscriptions are one group.
        subscribed: which group subscribes to which topic, shape (G, T).
        hashes: of the members' identities, shape (M,).
        weights: of the members, shape (M,); scaled to at most 1 where they differ by more than any load.
        unread: topics without a subscriber or a partition, sorted by name; not in `topics`.
    """

    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    first: I64
    owner: I32
    claimant: I32
    group_of: I32
    subscribed: Bools
    hashes: U64
    weights: NDArray[np.float64]
    unread: tuple[Topic, ...]

    @property
    def partitions(self) -> int:
        """Number of all partitions."""
        return int(self.first[-1])

    @property
    def owned(self) -> I64:
        """Valid claims of each member on each topic, shape (T, M)."""
        out = np.zeros((len(self.topics), len(self.members)), dtype=np.int64)
        held = np.flatnonzero(self.owner >= 0)
        np.add.at(out, (np.searchsorted(self.first, held, side="right") - 1, self.owner[held]), 1)
        return out

    @property
    def equal(self) -> bool:
        """Whether every member subscribes to every topic."""
        return len(self.subscribed) == 1


def read_problem(topics: Iterable[Topic], members: Iterable[Member], seed: int, *, keep: bool = True) -> Problem:
    """Sort the input and check the claims.

    A claim is valid when its topic exists and is subscribed, its partition exists, no newer generation claims it and
    no other member of the same generation does (KIP-792): two of one generation are both void. Without `keep` all are.

    Raises:
        TopicError: two topics of one name, or two members of one id.
    """
    given = sorted(topics, key=lambda t: t.name)
    ordered_members = tuple(sorted(members, key=lambda m: (m.identity, m.id)))
    _refuse_duplicates([t.name for t in given], "topic")
    _refuse_duplicates(sorted(m.id for m in ordered_members), "member")
    group_of, subscribed = _subscriptions(given, ordered_members)
    read = subscribed.any(axis=0) & np.array([t.partitions > 0 for t in given], dtype=bool)
    ordered = tuple(t for t, some in zip(given, read, strict=True) if some)
    subscribed = subscribed[:, read]
    if len(subscribed) > 1:  # members that differ only in topics that do not exist subscribe to the same
        first_of, same = equal_rows(subscribed)
        subscribed, group_of = subscribed[first_of], same[group_of].astype(np.int32)
    first = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum([t.partitions for t in ordered], out=first[1:])
    owner, claimant = _claims(ordered, ordered_members, first)
    if not keep:
        owner[:] = NO_OWNER
    if owner.size:
        topic_of = np.repeat(np.arange(len(ordered)), np.diff(first))
        lost = (owner >= 0) & ~subscribed[group_of[owner], topic_of] if ordered_members else owner >= 0
        owner[lost] = NO_OWNER
    return Problem(
        topics=ordered,
        members=ordered_members,
        first=first,
        owner=owner,
        claimant=claimant,
        group_of=group_of,
        subscribed=subscribed,
        hashes=_identity_hashes(ordered_members, seed),
        weights=_weights(ordered_members),
        unread=tuple(t for t, some in zip(given, read, strict=True) if not some),
    )


def _weights(members: Sequence[Member]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.array([m.weight for m in members], dtype=np.float64)
    if weights.size and (weights.max() > _HEAVIEST or weights.min() < 1 / _HEAVIEST):
        # Their sum, or a quotient by them, would be infinite; and no number of partitions tells such weights apart.
        weights = np.maximum(weights / weights.max(), 1 / _HEAVIEST)
    return weights


def equal_rows(table: Bools) -> tuple[I64, I64]:
    """Number the different rows in the order they appear (np.unique sorts them field by field, which is far slower).

    Returns:
        The first row of each number, and the number of each row.
    """
    numbers: dict[bytes, int] = {}
    of = [numbers.setdefault(row.tobytes(), len(numbers)) for row in np.ascontiguousarray(table)]
    number_of = np.array(of, dtype=np.int64)
    first = np.full(len(numbers), len(of), dtype=np.int64)
    np.minimum.at(first, number_of, np.arange(len(of)))
    return first, number_of


def _refuse_duplicates(names: Sequence[str], what: str) -> None:
    for one, two in itertools.pairwise(names):
        if one == two:
            raise TopicError(f"{what} {one!r} is given twice: give each once")


def _identity_hashes(members: Sequence[Member], seed: int) -> U64:
    # Two members of one identity (the same agent= given twice) must not rank alike: the second one gets a suffix.
    names, before = [], None
    for member in members:
        names.append(member.identity if member.identity != before else f"{member.identity}\0{member.id}")
        before = member.identity
    return hash64s(names, seed)


def _subscriptions(topics: Sequence[Topic], members: Sequence[Member]) -> tuple[I32, Bools]:
    by_object: dict[int, int] = {}
    by_value: dict[frozenset[str], int] = {}
    group_of = np.zeros(len(members), dtype=np.int32)
    for i, member in enumerate(members):
        # Often all members share one set object, and no sets have to be compared.
        group = by_object.get(id(member.topics))
        if group is None:
            group = by_value.setdefault(frozenset(member.topics), len(by_value))
            by_object[id(member.topics)] = group
        group_of[i] = group
    subscribed = np.zeros((len(by_value), len(topics)), dtype=bool)
    for wanted, group in by_value.items():
        subscribed[group] = [t.name in wanted for t in topics]
    return group_of, subscribed


def _claims(topics: Sequence[Topic], members: Sequence[Member], first: I64) -> tuple[I32, I32]:
    places = {t.name: (int(first[i]), t.partitions) for i, t in enumerate(topics)}
    total = int(first[-1])
    owner = [NO_OWNER] * total
    claimant = [NO_OWNER] * total
    generation_of = [-2] * total  # below every generation a member can claim
    for i, member in enumerate(members):
        generation = max(member.generation, -1)
        for topic, partition in member.owned:
            base, count = places.get(topic, (0, 0))
            if not 0 <= partition < count:
                continue
            at = base + partition
            claimant[at] = i if claimant[at] in (NO_OWNER, i) else SEVERAL_CLAIMANTS
            if generation > generation_of[at]:
                owner[at], generation_of[at] = i, generation
            elif generation == generation_of[at] and owner[at] != i:
                owner[at] = NO_OWNER
    return np.array(owner, dtype=np.int32), np.array(claimant, dtype=np.int32)
