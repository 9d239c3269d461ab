"""`azimuth plan --owners`: which member owns which partitions of a live group now."""

import json
from typing import TYPE_CHECKING

from spark_sink.cli._texts import counted

if TYPE_CHECKING:
    from assignors.comparison import LiveGroup

_FREE = "(no member)"


def owners(group: "LiveGroup") -> dict[str, dict[str, list[int]]]:
    """Return the partitions that each member owns, by member and topic, sorted; members without any stay in.

    A member's key is its `group.instance.id`, or the name of its agent; else its member id. Partitions of the group's
    topics that no member owns, as during a rebalance, are under `(no member)`.
    """
    free = {(topic.name, number) for topic in group.topics for number in range(topic.partitions)}
    found: dict[str, dict[str, list[int]]] = {}
    for member in sorted(group.members, key=lambda one: (one.identity, one.id)):
        # Two members with one name are a fault that the list must show: the second gets its member id.
        name = member.id if member.identity in found else member.identity
        found[name] = _by_topic(member.owned)
        free -= member.owned
    return found | ({_FREE: _by_topic(free)} if free else {})


def rendered(group: "LiveGroup", *, as_json: bool) -> str:
    """Return the owners as text, or as one JSON object."""
    found = owners(group)
    if as_json:
        return json.dumps({"group": group.name, "state": group.state, "owners": found})
    lines = []
    for member, topics in found.items():
        count = sum(map(len, topics.values()))
        lines.append(f"{member}: {counted(count, 'partition')} of {counted(len(topics), 'topic')}")
        lines += [f"  {topic}: {', '.join(map(str, numbers))}" for topic, numbers in topics.items()]
    return "\n".join(lines)


def _by_topic(partitions: "set[tuple[str, int]] | frozenset[tuple[str, int]]") -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
