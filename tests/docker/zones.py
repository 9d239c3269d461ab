"""Three brokers in containers, one per zone, with faults that need containers: pause, cut off, delay; byte counts."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaException
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from spark_sink.demo.topics import view_of

IMAGE: Final = os.environ.get("KAFKA_IMAGE", "apache/kafka:4.3.0")
RACKS: Final = ("az-a", "az-b", "az-c")
_UP_S: Final = 120.0
# A killed container restarts with formatted disks, which not every image's entry point accepts.
_COMMAND: Final = """
if [ -e /tmp/formatted ]; then
  exec java $KAFKA_HEAP_OPTS -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
fi
touch /tmp/formatted
exec /etc/kafka/docker/run
"""
_CLUSTER: Final = "5L6g3nShT-eMCtK--X86sw"


class Zones:
    """A private network with a broker per zone; broker n is in `RACKS[n - 1]`.

    Contract: a fault is undone by its counterpart (`pause` and `unpause`, `cut` and `mend`, `kill` and `start`), which
    returns when the broker is a member of the cluster again and its replicas are in sync. Leaving the context removes
    containers and network.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._ports = _free_ports(len(RACKS))
        self._containers: dict[int, DockerContainer] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._network = stack.enter_context(Network())
            for number, rack in enumerate(RACKS, start=1):
                self._containers[number] = stack.enter_context(self._broker(number, rack))
            self._await_brokers(len(RACKS))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._containers:
            if self._docker(number).status == "paused":  # a paused container cannot be removed
                self._docker(number).unpause()
        self._stack.close()

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, as this machine reaches them."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def received_bytes(self) -> dict[str, int]:
        """Bytes that arrived at each zone's broker so far, as the container's network interface counts them."""
        return {rack: self._counter(number, "rx_bytes") for number, rack in enumerate(RACKS, start=1)}

    def pause(self, number: int) -> None:
        """Freeze a broker: its connections stay open without answers."""
        self._docker(number).pause()

    def unpause(self, number: int) -> None:
        """Resume a frozen broker."""
        self._docker(number).unpause()
        self._await_brokers(len(RACKS))

    def cut(self, number: int) -> None:
        """Disconnect a running broker from the network: packets to and from it are lost."""
        self._client_network().disconnect(self._docker(number))

    def mend(self, number: int) -> None:
        """Connect a broker again, under the name the others know."""
        self._client_network().connect(self._docker(number), aliases=[_host(number)])
        self._await_brokers(len(RACKS))

    def kill(self, *numbers: int) -> None:
        """SIGKILL brokers."""
        for number in numbers:
            self._docker(number).kill()

    def start(self, *numbers: int) -> None:
        """Start killed brokers on the disks they had."""
        for number in numbers:
            self._docker(number).start()
        self._await_brokers(len(RACKS))

    def delay(self, number: int, milliseconds: int) -> str | None:
        """Delay what a broker sends (tc netem); 0 ends it.

        Returns:
            None, or why this machine cannot.
        """
        tc, nsenter = shutil.which("tc"), shutil.which("nsenter")
        if tc is None or nsenter is None:
            return "there is no `tc` or `nsenter` (Debian: iproute2, util-linux)"
        verb = ["add", "dev", "eth0", "root", "netem", "delay", f"{milliseconds}ms"] if milliseconds else []
        pid = str(self._docker(number).attrs["State"]["Pid"])
        inside = [nsenter, "-t", pid, "-n", tc, "qdisc", *(verb or ["del", "dev", "eth0", "root"])]
        done = subprocess.run(inside, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]

    def _broker(self, number: int, rack: str) -> DockerContainer:
        voters = ",".join(f"{one}@{_host(one)}:9093" for one in range(1, len(RACKS) + 1))
        container = DockerContainer(IMAGE).with_network(self._network).with_network_aliases(_host(number))
        settings = {
            "CLUSTER_ID": _CLUSTER,
            "KAFKA_NODE_ID": str(number),
            "KAFKA_BROKER_RACK": rack,
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
            "KAFKA_LISTENERS": "INSIDE://:19092,OUTSIDE://:9092,CONTROLLER://:9093",
            "KAFKA_ADVERTISED_LISTENERS": (
                f"INSIDE://{_host(number)}:19092,OUTSIDE://127.0.0.1:{self._ports[number - 1]}"
            ),
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "3",
            "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "6",
            "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "3",
            "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "2",
            "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "6",
            "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "3",
            "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "2",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "500",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
            "KAFKA_HEAP_OPTS": "-Xms256m -Xmx512m",
        }
        container.with_command(["bash", "-c", _COMMAND])
        return container.with_envs(**settings).with_bind_ports(9092, self._ports[number - 1])

    def _docker(self, number: int) -> Any:
        container = self._containers[number].get_wrapped_container()
        container.reload()
        return container

    def _client_network(self) -> Any:
        return self._docker(1).client.networks.get(self._network.id)

    def _counter(self, number: int, name: str) -> int:
        networks = self._docker(number).stats(stream=False)["networks"]
        return sum(interface[name] for interface in networks.values())

    def _await_brokers(self, count: int) -> None:
        deadline = time.monotonic() + _UP_S
        while not _agree(self.bootstrap_servers.split(","), count):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{count} brokers were not up in {_UP_S:g} s:\n{self._last_words()}")
            time.sleep(0.2)

    def _last_words(self) -> str:
        return "\n".join(
            f"{_host(n)}: {one.get_wrapped_container().logs(tail=8).decode(errors='replace')}"
            for n, one in self._containers.items()
        )


def _agree(servers: Sequence[str], count: int) -> bool:
    """Whether all brokers name the same leaders, and no replica lags.

    A broker that was cut off continues as a leader for a moment, until it learns of its successor. Producers that reach
    it while no other broker lives fail permanently (out of order sequence) or repeat a record, which is not the subject
    of the test.
    """
    views = []
    for server in servers:
        try:
            found = view_of(server, timeout_s=5)
        except KafkaException:
            return False
        partitions = [(name, one) for name, topic in found.topics.items() for one in topic.partitions.values()]
        if len(found.brokers) < count or any(set(one.isrs) != set(one.replicas) for _, one in partitions):
            return False
        views.append({(name, one.id, one.leader) for name, one in partitions})
    return all(view == views[0] for view in views)


def _host(number: int) -> str:
    return f"kafka-{number}"


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
