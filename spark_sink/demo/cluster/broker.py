"""One broker of a cluster, and the rights of its users."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where one broker listens and which zone it says it is in."""

    id: int
    rack: str
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """A broker as it is now."""

    broker: Broker
    pid: int | None
    listening: bool

    @property
    def state(self) -> str:
        """`up`, `starting` or `down`."""
        if self.pid is None:
            return "down"
        return "up" if self.listening else "starting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rights of users on a cluster; by default every user may do everything, without encryption.

    Attributes:
        broker: properties of the brokers: listeners' protocols, certificates, the authorizer.
        scram: passwords of users, known to the brokers by SCRAM-SHA-256.
        client: librdkafka's properties for a user who may describe the cluster.
    """

    broker: Mapping[str, str] = field(default_factory=dict)
    scram: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
