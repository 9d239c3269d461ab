"""What a topic of a fleet is: a name on two clusters is two topics, and a recreated topic is a new one."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FleetTopic:
    """One topic of one cluster.

    Attributes:
        cluster: the cluster's own id, as its brokers tell it.
        id: the topic's own id, which no second topic ever has (KIP-516), as librdkafka writes it.
        name: what people call it.
        source: what the configuration calls the cluster.
        partitions: how many.
    """

    cluster: str
    id: str
    name: str
    source: str = ""
    partitions: int = 1

    @property
    def identity(self) -> str:
        """What is ranked: `<cluster id>/<topic id>`."""
        return f"{self.cluster}/{self.id}"

    @property
    def printed_id(self) -> str:
        """The id as Kafka's own tools print it: without the slashes of base64 it can be part of a path or a name."""
        return self.id.replace("+", "-").replace("/", "_")

    @property
    def label(self) -> str:
        """How people tell it from the same name on another cluster: `<source>/<name>`."""
        return f"{self.source or self.cluster}/{self.name}"


def once_each(topics: Iterable[FleetTopic]) -> tuple[tuple[FleetTopic, ...], list[str]]:
    """Leave out topics that stand twice, because two sources are one cluster: the first source's are read.

    Returns:
        The topics in their order, each once, and a sentence for each two sources that share some.
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
