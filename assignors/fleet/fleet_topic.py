"""A topic of a fleet: a name on two clusters means two topics, and a recreated topic is a new topic."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class FleetTopic:
    """One topic of one cluster.

    Attributes:
        cluster: the cluster's id, from its brokers.
        id: the topic's id, which is never reused (KIP-516), as librdkafka writes it.
        name: the topic's name.
        source: the cluster's name in the configuration.
        partitions: number of partitions.
        share: the partitions that an agent is to read of it; None if the consumer group decides.
        zones: zones of the brokers that have its replicas, sorted; empty if unknown. They do not count when topics
            are compared.
    """

    cluster: str
    id: str
    name: str
    source: str = ""
    partitions: int = 1
    share: tuple[int, ...] | None = None
    zones: tuple[str, ...] = field(default=(), compare=False)

    @property
    def identity(self) -> str:
        """The key of the ranking: `<cluster id>/<topic id>`."""
        return f"{self.cluster}/{self.id}"

    @property
    def printed_id(self) -> str:
        """The id as Kafka's tools print it: without the slashes of base64, so it can be part of a path or a name."""
        return self.id.replace("+", "-").replace("/", "_")

    @property
    def label(self) -> str:
        """A readable name that is unique across clusters: `<source>/<name>`."""
        return f"{self.source or self.cluster}/{self.name}"


def once_each(topics: Iterable[FleetTopic]) -> tuple[tuple[FleetTopic, ...], list[str]]:
    """Leave out duplicate topics of two sources with the same cluster; those of the first source stay.

    Returns:
        The topics in order, each once, and a sentence for each pair of sources that share topics.
    """
    first: dict[str, FleetTopic] = {}
    twice: dict[tuple[str, str], list[str]] = {}
    for topic in topics:
        known = first.setdefault(topic.identity, topic)
        if known is not topic:
            twice.setdefault((known.source, topic.source), []).append(topic.name)
    return tuple(first.values()), [
        f"sources {one!r} and {other!r} are one cluster and both name {len(names)} of its topics, such as "
        f"{min(names)!r}: read for {one!r} alone; take them out of one of the two"
        for (one, other), names in twice.items()
    ]
