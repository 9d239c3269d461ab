"""Topics that a person gives to members: no other member is planned as a subscriber. Pure.

The planner then balances all loads among different subscriptions, so it needs no other rules for such topics. Claims of
other members on them are void, as after an unsubscription.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from assignors.errors import OverrideError
from assignors.planner.topics_and_members import Member

Overrides = Mapping[str, str | Sequence[str]]
"""By topic the members that alone read it, by identity (`group.instance.id`, else the agent's name) or member id."""

Pinned = dict[str, tuple[str, ...]]


def checked_overrides(overrides: Overrides) -> Pinned:
    """Return the overrides with a tuple of names for each topic.

    Raises:
        OverrideError: no mapping, or a value that is neither a name nor names, each once.
    """
    if not isinstance(overrides, Mapping):
        raise OverrideError(f"overrides={overrides!r}, need a mapping of topics to members")
    found: Pinned = {}
    for topic, given in overrides.items():
        names = (given,) if isinstance(given, str) else given
        valid = isinstance(topic, str) and isinstance(names, Sequence)
        if not valid or not names or not all(isinstance(n, str) and n for n in names) or len(set(names)) < len(names):
            raise OverrideError(f"override for topic {topic!r}: {given!r}, need one member or more by name, each once")
        found[topic] = tuple(names)
    return found


def pinned_members(members: Iterable[Member], overrides: Overrides) -> list[Member]:
    """Return the members, with the subscriptions that the overrides leave to them.

    Raises:
        OverrideError: the overrides are invalid, or one names no member, or a member that does not subscribe to the
            topic.
    """
    everyone = list(members)
    pinned = checked_overrides(overrides)
    _, absent = present_overrides(pinned, everyone)
    for topic, names in absent.items():
        known = {name for one in everyone for name in (one.id, one.identity)}
        missing = [name for name in names if name not in known]
        if missing:
            there = ", ".join(sorted({one.identity for one in everyone})) or "none"
            raise OverrideError(f"override for topic {topic!r}: no member {missing[0]!r}; members are {there}")
        raise OverrideError(f"override for topic {topic!r}: member {names[0]!r} does not subscribe to it")
    return [_restricted(one, pinned) for one in everyone]


def present_overrides(pinned: Mapping[str, Sequence[str]], members: Iterable[Member]) -> tuple[Pinned, Pinned]:
    """Divide the names of overrides into those of members that subscribe to the topic, and the others.

    Returns:
        Names by topic: of subscribers, and of others; topics without such names are left out.
    """
    by_name: dict[str, list[Member]] = {}
    for one in members:
        for name in {one.id, one.identity}:
            by_name.setdefault(name, []).append(one)
    present: Pinned = {}
    absent: Pinned = {}
    for topic, names in pinned.items():
        reads = {name: any(topic in one.topics for one in by_name.get(name, ())) for name in names}
        for found, wanted in ((present, True), (absent, False)):
            if chosen := tuple(name for name in names if reads[name] is wanted):
                found[topic] = chosen
    return present, absent


def _restricted(member: Member, pinned: Mapping[str, Sequence[str]]) -> Member:
    others = {topic for topic, names in pinned.items() if member.id not in names and member.identity not in names}
    return replace(member, topics=member.topics - others) if others & member.topics else member
