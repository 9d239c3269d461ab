"""The contents of a broker's configuration file and log settings."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

LOG4J = """<Configuration status="ERROR">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c{1}: %m%n"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


def server_properties(  # noqa: PLR0913 - each is named at the call
    *,
    broker_id: int,
    rack: str,
    port: int,
    controllers: Sequence[tuple[int, int]],
    data: Path,
    more: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the properties of a broker that is also a controller of the quorum.

    Args:
        broker_id: node.id, from 1.
        rack: broker.rack, the zone.
        port: port of the listener CLIENT, for clients and other brokers, on 127.0.0.1.
        controllers: (node id, port) of every controller.
        data: the log directory.
        more: properties that override those here.
    """
    voters = ",".join(f"{node}@127.0.0.1:{at}" for node, at in controllers)
    copies = min(3, len(controllers))
    settings = {
        "process.roles": "broker,controller",
        "node.id": broker_id,
        "broker.rack": rack,
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{dict(controllers)[broker_id]}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": data,
        # KIP-392: a consumer with client.rack fetches from the replica in its zone.
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": max(1, copies - 1),
        "transaction.state.log.num.partitions": 6,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": max(1, copies - 1),
        # Long enough to gather members that start together. The first join of each new group waits this long, so a user
        # waits it at each start of a query; the configuration that comes with Kafka has 0 for that reason.
        "group.initial.rebalance.delay.ms": 100,
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        # Sized for small machines: hundreds of partitions, a few hundred MB of memory a broker.
        "num.network.threads": 2,
        "num.io.threads": 4,
        # A replica's request looks at all partitions of its fetcher, and each append of a producer answers two of them:
        # with one fetcher for hundreds of partitions a trickle of records takes as much as a flood.
        "num.replica.fetchers": 6,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        "log.index.size.max.bytes": 1024 * 1024,
        # Leaders of a dead broker move after a session timeout of 9 s (Kafka's default). With less, a busy machine
        # fences live brokers, and partitions are left with one in-sync replica.
        "broker.heartbeat.interval.ms": 1000,
        "controlled.shutdown.enable": "true",
    }
    return "".join(f"{name}={_escaped(str(value))}\n" for name, value in {**settings, **more}.items())


def _escaped(value: str) -> str:
    # Java reads the file as Latin-1, and it understands JSON's escapes (of non-ASCII characters and backslashes).
    return json.dumps(value)[1:-1]
