"""What a topic of a fleet is: a name on two clusters is two topics, and one that is made anew is a new one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FleetTopic:
    """One topic of one cluster.

    Attributes:
        cluster: the cluster's own id, as its brokers tell it.
        id: the topic's own id, which no second topic ever has (KIP-516).
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
    def label(self) -> str:
        """How people tell it from the same name on another cluster: `<source>/<name>`."""
        return f"{self.source or self.cluster}/{self.name}"
