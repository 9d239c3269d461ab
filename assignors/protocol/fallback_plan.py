"""A simple plan, for a leader whose planner failed."""

from collections.abc import Iterable

from assignors.planner.topics_and_members import Member, Topic, TopicPartition


def fallback_plan(
    topics: Iterable[Topic], members: Iterable[Member], *, cooperative: bool = False
) -> dict[str, list[TopicPartition]]:
    """Give each partition to its only claimant or to the least loaded subscriber; deterministic.

    Args:
        topics: the topics that the group could read.
        members: of the group, with what they own.
        cooperative: leave out for this round the partitions that several members claim.

    Returns:
        Partitions of each member, sorted.
    """
    ordered = sorted(members, key=lambda m: (m.identity, m.id))
    plan: dict[str, list[TopicPartition]] = {m.id: [] for m in ordered}
    for topic in sorted(topics, key=lambda t: t.name):
        readers = [m for m in ordered if topic.name in m.topics]
        for partition in range(topic.partitions if readers else 0):
            pair = (topic.name, partition)
            claimants = [m for m in readers if pair in m.owned]
            if cooperative and len(claimants) > 1:
                continue
            best = claimants[0] if len(claimants) == 1 else min(readers, key=lambda m: len(plan[m.id]))
            plan[best.id].append(pair)
    return plan
