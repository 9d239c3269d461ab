"""The planner's input as arrays: topics and members in one fixed order, with checked claims."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from assignors.errors import AssignorError, GroupError, TopicError
from assignors.hashing.murmur3_hash import U64, hash64s
from assignors.planner.plan_loops import claimed_places
from assignors.planner.topics_and_members import Member, Topic

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_OWNER = -1
SEVERAL_CLAIMANTS = -2
_HEAVIEST = 1e9
MOST_PLANNED: Final = 10_000_000
"""Most partitions of a plan. A cluster has at most a few million; the time grows with them, about 10 s a million."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Topics sorted by name, members by identity, partitions numbered consecutively.

    Attributes:
        topics: sorted by name.
        members: sorted by identity, then id.
        first: number of the first partition of each topic, shape (T + 1,).
        owner: member that holds a valid claim on each partition, or NO_OWNER, shape (P,).
        claimant: the only member with a claim on it, valid or not; NO_OWNER; or SEVERAL_CLAIMANTS; shape (P,).
        identities: the names that rank the members.
        group_of: subscription group of each member, shape (M,): equal subscriptions are one group.
        subscribed: which group subscribes to which topic, shape (G, T).
        hashes: of the members' identities, shape (M,).
        weights: of the members, shape (M,); scaled to at most 1 if they differ by more than any load.
        unread: topics without a subscriber or a partition, sorted by name; not in `topics`.
    """

    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    first: I64
    owner: I32
    claimant: I32
    identities: tuple[str, ...]
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
        shape = len(self.topics), len(self.members)
        held = np.flatnonzero(self.owner >= 0)
        cells = (np.searchsorted(self.first, held, side="right") - 1) * shape[1] + self.owner[held]
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    @property
    def equal(self) -> bool:
        """Whether every member subscribes to every topic."""
        return len(self.subscribed) == 1


def read_problem(topics: Iterable[Topic], members: Iterable[Member], seed: int, *, keep: bool = True) -> Problem:
    """Sort the input and check the claims.

    A claim is valid if the member subscribes to the topic, the partition exists, no newer generation claims it, and no
    other member claims it in the same generation (KIP-792): two claims of one generation are both void. Without `keep`
    all claims are void.

    Raises:
        GroupError: a member, or one of its claims, is something else.
        TopicError: two topics of one name, two members of one id, a topic that is something else, or too many
            partitions.
    """
    given = sorted(_listed("topics", topics, Topic, TopicError), key=lambda t: t.name)
    unordered = _listed("members", members, Member, GroupError)
    keys = [(m.instance or m.id, m.id) for m in unordered]  # `identity`, which as a call takes three times as long
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ordered_members = tuple([unordered[i] for i in order])
    identities = tuple([keys[i][0] for i in order])
    _refuse_duplicates([t.name for t in given], "topic")
    _refuse_duplicates([m.id for m in ordered_members], "member")
    group_of, subscribed = _subscriptions(given, ordered_members)
    read = subscribed.any(axis=0) & np.array([t.partitions > 0 for t in given], dtype=bool)
    ordered = tuple(t for t, some in zip(given, read, strict=True) if some)
    subscribed = subscribed[:, read]
    if len(subscribed) > 1:  # members that differ only in nonexistent topics have equal subscriptions
        first_of, same = equal_rows(subscribed)
        subscribed, group_of = subscribed[first_of], same[group_of].astype(np.int32)
    if (total := sum(t.partitions for t in ordered)) > MOST_PLANNED:
        raise TopicError(f"topics of {total} partitions in all: a plan has at most {MOST_PLANNED}")
    first = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum([t.partitions for t in ordered], out=first[1:])
    owner, claimant = _claims(ordered, ordered_members, first)
    if not keep:
        owner[:] = NO_OWNER
    if owner.size and not subscribed.all():
        topic_of = np.repeat(np.arange(len(ordered)), np.diff(first))
        lost = (owner >= 0) & ~subscribed[group_of[owner], topic_of] if ordered_members else owner >= 0
        owner[lost] = NO_OWNER
    return Problem(
        topics=ordered,
        members=ordered_members,
        first=first,
        owner=owner,
        claimant=claimant,
        identities=identities,
        group_of=group_of,
        subscribed=subscribed,
        hashes=_identity_hashes(identities, ordered_members, seed),
        weights=_weights(ordered_members),
        unread=tuple(t for t, some in zip(given, read, strict=True) if not some),
    )


def _weights(members: Sequence[Member]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.array([m.weight for m in members], dtype=np.float64)
    if weights.size and (weights.max() > _HEAVIEST or weights.min() < 1 / _HEAVIEST):
        # Their sum, or a quotient by them, would be infinite, and no number of partitions distinguishes such weights.
        weights = np.maximum(weights / weights.max(), 1 / _HEAVIEST)
    return weights


def equal_rows(table: Bools) -> tuple[I64, I64]:
    """Number the distinct rows in order of appearance (np.unique sorts them field by field, which is much slower).

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
    if len(set(names)) == len(names):
        return
    for one, two in itertools.pairwise(sorted(names)):
        if one == two:
            raise TopicError(f"{what} {one!r} is given twice: give each once")


def _identity_hashes(identities: Sequence[str], members: Sequence[Member], seed: int) -> U64:
    # Two members of one identity (the same agent= set twice) must have different ranks, so the second gets a suffix.
    names = list(identities)
    if len(set(names)) < len(names):
        before = [None, *names[:-1]]
        names = [
            f"{name}\0{m.id}" if name == last else name for name, last, m in zip(names, before, members, strict=True)
        ]
    return hash64s(names, seed)


def _subscriptions(topics: Sequence[Topic], members: Sequence[Member]) -> tuple[I32, Bools]:
    by_value: dict[frozenset[str], int] = {}
    # Often all members share one set object, so few sets have to be compared.
    objects = {id(m.topics): m.topics for m in members}
    by_object = {one: by_value.setdefault(frozenset(wanted), len(by_value)) for one, wanted in objects.items()}
    several = len(by_value) > 1
    groups = [by_object[id(m.topics)] for m in members] if several else [0] * len(members)
    group_of = np.array(groups, dtype=np.int32)
    subscribed = np.zeros((len(by_value), len(topics)), dtype=bool)
    for wanted, group in by_value.items():
        subscribed[group] = [t.name in wanted for t in topics]
    return group_of, subscribed


def _listed(name: str, given: Iterable[_Item], kind: type[_Item], error: type[AssignorError]) -> list[_Item]:
    if not isinstance(given, Iterable):
        raise error(f"{name}={given!r}: need a list of {kind.__name__}")
    found = list(given)
    for one in found:
        if not isinstance(one, kind):
            raise error(f"{name} has {one!r}: need a list of {kind.__name__}")
    return found


def _claims(topics: Sequence[Topic], members: Sequence[Member], first: I64) -> tuple[I32, I32]:
    """Return the owner by valid claims and the claimant of each partition, shapes (P,)."""
    total = int(first[-1])
    at, member = claimed_places({t.name: i for i, t in enumerate(topics)}, [m.owned for m in members], first)
    claimant = np.full(total, NO_OWNER, dtype=np.int32)
    latest = claimant.copy()
    latest[at] = member  # members ascend: the last of several claims remains
    claimant[at[::-1]] = member[::-1]
    contested = latest != claimant
    owner = claimant.copy()
    if contested.any():
        owner[contested] = NO_OWNER
        claimant[contested] = SEVERAL_CLAIMANTS
        among = contested[at]
        _settle_contested(owner, at[among], member[among], np.array([max(m.generation, -1) for m in members]))
    return owner, claimant


def _settle_contested(owner: I32, at: I64, member: I64, generations: I64) -> None:
    """Give each partition to its claimant of the newest generation, if there is only one."""
    generation = generations[member]
    order = np.lexsort((member, generation, at))
    at, member, generation = at[order], member[order], generation[order]
    same_generation = (at[1:] == at[:-1]) & (generation[1:] == generation[:-1])
    starts = np.flatnonzero(np.r_[True, ~same_generation])
    ends = np.r_[starts[1:], len(at)] - 1
    newest = np.r_[at[starts[1:]] != at[ends[:-1]], True]
    sole = newest & (member[starts] == member[ends])
    owner[at[ends[sole]]] = member[ends[sole]]
