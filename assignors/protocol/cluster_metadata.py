"""Reads topics from kafka-python's cluster metadata."""

from collections.abc import Iterable
from typing import Any

from assignors.clients.kafka_python_internals import partition_metadata
from assignors.planner.topics_and_members import Topic


def read_topics(cluster: Any, names: Iterable[str]) -> list[Topic]:  # noqa: ANN401 - untyped in kafka-python
    """Read partitions and racks; topics that are not in the metadata (deleted, or not fetched yet) are left out."""
    racks = {b.node_id: b.rack for b in cluster.brokers() if getattr(b, "rack", None)}
    found = (_read_topic(cluster, name, racks) for name in sorted(names))
    return [topic for topic in found if topic is not None]


def _read_topic(cluster: Any, name: str, racks: dict[int, str]) -> Topic | None:  # noqa: ANN401 -- kafka-python is untyped
    numbers = cluster.partitions_for_topic(name)
    if not numbers:
        return None
    count = max(numbers) + 1
    state = partition_metadata(cluster, name) if racks else {}
    if not state:  # unknown topic
        return Topic(name, count)
    of = [state.get(p) for p in range(count)]
    return Topic(
        name,
        count,
        racks=[frozenset(racks[n] for n in getattr(p, "replica_nodes", None) or () if n in racks) for p in of],
        leaders=[racks.get(getattr(p, "leader_id", -1)) for p in of],
    )
