"""The plan of last resort: plain, in a few lines, for a leader whose planner failed."""

from collections.abc import Iterable

from assignors.planner.topics_and_members import Member, Topic, TopicPartition


def spare_plan(
    topics: Iterable[Topic], members: Iterable[Member], *, cooperative: bool = False
) -> dict[str, list[TopicPartition]]:
    """Give each partition to its only claimant or to the least loaded subscriber; deterministic.

    Args:
        topics: what can be read.
        members: who takes part.
        cooperative: leave out for this round what several members claim.

    Returns:
        Partitions of each member, sorted.
    """
    people = sorted(members, key=lambda m: (m.identity, m.id))
    plan: dict[str, list[TopicPartition]] = {m.id: [] for m in people}
    for topic in sorted(topics, key=lambda t: t.name):
        readers = [m for m in people if topic.name in m.topics]
        for partition in range(topic.partitions if readers else 0):
            pair = (topic.name, partition)
            claimants = [m for m in readers if pair in m.owned]
            if cooperative and len(claimants) > 1:
                continue
            best = claimants[0] if len(claimants) == 1 else min(readers, key=lambda m: len(plan[m.id]))
            plan[best.id].append(pair)
    return plan
