"""One broker of a cluster, and the rights of its users."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker's address and zone."""

    id: int
    rack: str
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """The current state of a broker."""

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
        client: librdkafka's properties of a user with the right to describe the cluster.
    """

    broker: Mapping[str, str] = field(default_factory=dict)
    scram: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
