"""The cluster: its state file, its brokers, and the operations on them."""

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from assignors.clients import admin_properties
from spark_sink.agent.start.java_command import cache_directory, find_java
from spark_sink.demo.cluster.broker import Access, Broker, BrokerStatus
from spark_sink.demo.cluster.broker_archive import archived_classes, fetch_jars
from spark_sink.demo.cluster.broker_assignors import PROPERTIES, install_assignor_jar
from spark_sink.demo.cluster.broker_process import (
    ProcessIdentity,
    broker_command,
    last_lines,
    launch,
    uninterrupted,
    wait_until_gone,
)
from spark_sink.demo.cluster.broker_storage import format_storage, new_cluster_id
from spark_sink.demo.cluster.kafka_jars import KAFKA_VERSION
from spark_sink.demo.cluster.memory_data import place_in_memory, remove_from_memory
from spark_sink.demo.cluster.ports import choose_ports, is_free, ports_from
from spark_sink.errors import ClusterError

ZONES = ("az-a", "az-b", "az-c")
_NEEDED_BYTES = 1_000_000_000
# Without the optimising compiler, whose work pays off after minutes.
_BRIEF = "-XX:TieredStopAtLevel=1"


@dataclass(slots=True, kw_only=True)
class Cluster:
    """The brokers of one cluster on this machine, with a state directory that any process can open.

    Contract:
    * `up` either returns a cluster whose brokers all answer, or leaves no process and raises.
    * The directory belongs to the cluster: `down` removes it. `up` takes over a directory whose brokers have died.
    * As a context manager the cluster goes down at the end of the block, also after an exception.
    """

    directory: Path
    brokers: tuple[Broker, ...]
    cluster_id: str
    processes: dict[int, ProcessIdentity] = field(default_factory=dict)
    tied: bool = False
    brief: bool = False
    access: Access = field(default_factory=Access, repr=False)

    @staticmethod
    def default_directory() -> Path:
        """Return the default directory of `azimuth cluster`."""
        return cache_directory() / "cluster"

    @classmethod
    def up(  # noqa: PLR0913 - each is named at the call
        cls,
        directory: Path,
        *,
        racks: Sequence[str] = ZONES,
        port: int | None = None,
        tied: bool = False,
        brief: bool = False,
        in_memory: bool = False,
        timeout_s: float = 60.0,
        access: Access | None = None,
        assignor_jar: Path | None = None,
    ) -> Self:
        """Start one broker per rack and return when all of them serve.

        Args:
            directory: for data, logs and state; the directory of a dead cluster is taken over.
            racks: `broker.rack` of each broker.
            port: port of the first broker, the others follow; None chooses free ports.
            tied: the brokers end with this process, even if it is killed.
            brief: the brokers live for minutes, so they compile their code quickly instead of well.
            in_memory: the brokers' data is in memory, where the machine has room; for a cluster that is tied.
            timeout_s: longest time until the brokers serve.
            access: certificates, users and rights; kept in memory and in the brokers' own files only.
            assignor_jar: the brokers load `azimuth-hrw` and `azimuth-shuffled` from this jar.

        Raises:
            ClusterError: a live cluster uses the directory, its name contains a comma, there is no Java, no jars or no
                space, a port is in use, or a broker does not start (with the end of its log).
        """
        if not racks:
            raise ClusterError("zones=[]: need at least one")
        if "," in str(directory.absolute()):
            raise ClusterError(
                f"{directory} has a comma, where Kafka would begin a second folder: choose another --dir"
            )
        java = find_java()
        directory = directory.absolute()
        try:
            _take_over(directory)
        except OSError as error:
            raise ClusterError(f"{directory}: cannot be made ({error.strerror}): choose another with --dir") from error
        _check_space(directory)
        jars = fetch_jars(java)
        count = len(racks)
        ports = choose_ports(2 * count) if port is None else [*ports_from(port, count), *choose_ports(count)]
        brokers = tuple(
            Broker(id=i + 1, rack=rack, port=ports[i], controller_port=ports[count + i]) for i, rack in enumerate(racks)
        )
        cluster = cls(directory=directory, brokers=brokers, cluster_id=new_cluster_id(), tied=tied, brief=brief)
        cluster.access = access or cluster.access
        if assignor_jar is not None:
            install_assignor_jar(assignor_jar, directory)
            cluster.access = replace(cluster.access, broker={**PROPERTIES, **cluster.access.broker})
        if in_memory:
            place_in_memory(directory, brokers)
        try:
            tool = [java, *archived_classes(java, jars)]
            format_storage(directory, brokers, cluster.cluster_id, cluster.access, tool, jars)
            for broker in brokers:
                cluster._launch(broker, java, jars)
            cluster.wait_until_up(timeout_s)
        except BaseException:
            cluster._stop_all()
            raise
        return cluster

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open the cluster of a directory.

        Raises:
            ClusterError: there is none.
        """
        try:
            state = json.loads((directory / "cluster.json").read_text())
            return cls(
                directory=directory.absolute(),
                brokers=tuple(Broker(**b) for b in state["brokers"]),
                cluster_id=state["cluster_id"],
                processes={int(i): ProcessIdentity(**p) for i, p in state["processes"].items()},
            )
        except FileNotFoundError as error:
            raise ClusterError(
                f"no cluster in {directory}: start one with `{cluster_command('up', directory)}`"
            ) from error
        except OSError as error:
            raise ClusterError(
                f"{directory} is not the folder of a cluster ({error.strerror}): name another with --dir"
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise ClusterError(f"{directory / 'cluster.json'} cannot be read: remove {directory}") from error

    @property
    def bootstrap_servers(self) -> str:
        """host:port of every broker, for clients."""
        return ",".join(f"127.0.0.1:{b.port}" for b in self.brokers)

    def status(self) -> list[BrokerStatus]:
        """Return the current state of every broker, in id order."""
        found = []
        for broker in self.brokers:
            identity = self.processes.get(broker.id)
            alive = identity is not None and identity.find() is not None
            found.append(
                BrokerStatus(
                    broker=broker,
                    pid=identity.pid if identity is not None and alive else None,
                    listening=alive and not is_free(broker.port),
                )
            )
        return found

    def log(self, broker_id: int) -> Path:
        """Return the file with a broker's output."""
        return self.directory / f"broker-{broker_id}.log"

    def kill(self, broker_id: int, signal_number: int = signal.SIGKILL) -> None:
        """Send a signal to one broker: SIGKILL, with a wait for its end; SIGSTOP and SIGCONT pause and resume it.

        Raises:
            ClusterError: there is no such broker, or it is not running.
        """
        identity = self.processes.get(self._broker(broker_id).id)
        if identity is None or identity.find() is None:
            raise ClusterError(f"broker {broker_id} is not running")
        if signal_number == signal.SIGKILL:
            identity.kill()
        else:
            identity.send(signal_number)

    def start(self, broker_id: int, timeout_s: float = 60.0) -> None:
        """Start a killed broker on its old port and data, and wait until it serves.

        Raises:
            ClusterError: there is no such broker, it runs already, its port is taken, or it does not serve in time.
        """
        broker = self._broker(broker_id)
        identity = self.processes.get(broker_id)
        if identity is not None and identity.find() is not None:
            raise ClusterError(f"broker {broker_id} runs already, as process {identity.pid}")
        if not is_free(broker.port):
            raise ClusterError(f"port {broker.port} of broker {broker_id} was taken by another process meanwhile")
        java = find_java()
        self._launch(broker, java, fetch_jars(java))
        self.wait_until_up(timeout_s, only=broker_id)

    def down(self) -> None:
        """Stop every broker and remove the directory."""
        self._stop_all()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.down()

    def wait_until_up(self, timeout_s: float, only: int | None = None) -> None:
        """Wait until the running brokers (or the one named) are registered and serve.

        Raises:
            ClusterError: a broker ended, or the time ran out; with the end of its log.
        """
        wanted = [b for b in self.brokers if only is None or b.id == only]
        deadline = time.monotonic() + timeout_s
        admin = AdminClient(
            admin_properties({"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **self.access.client})
        )
        while True:
            for broker in wanted:
                if self.processes[broker.id].find() is None:
                    raise ClusterError(f"broker {broker.id} did not come up:\n{last_lines(self.log(broker.id))}")
            if _registered(admin) >= {b.id for b in wanted} and not any(is_free(b.port) for b in wanted):
                return
            if time.monotonic() > deadline:
                late = wanted[0].id
                raise ClusterError(f"the brokers did not answer in {timeout_s:.0f} s:\n{last_lines(self.log(late))}")
            time.sleep(0.1)

    def _broker(self, broker_id: int) -> Broker:
        for broker in self.brokers:
            if broker.id == broker_id:
                return broker
        raise ClusterError(f"no broker {broker_id}: the cluster has {', '.join(str(b.id) for b in self.brokers)}")

    def _launch(self, broker: Broker, java: str, jars: Path) -> None:
        options = [*archived_classes(java, jars), *([_BRIEF] if self.brief else [])]
        command = broker_command(broker, self.directory, [java, *options], jars)
        with uninterrupted():
            self.processes[broker.id] = launch(command, log=self.log(broker.id), tied=self.tied)
            self._save()

    def _save(self) -> None:
        state = {
            "cluster_id": self.cluster_id,
            "kafka": KAFKA_VERSION,
            "bootstrap_servers": self.bootstrap_servers,
            "brokers": [asdict(b) for b in self.brokers],
            "processes": {i: asdict(p) for i, p in self.processes.items()},
        }
        new = self.directory / "cluster.json.new"
        new.write_text(json.dumps(state, indent=1))
        new.replace(self.directory / "cluster.json")

    def _stop_all(self) -> None:
        identities = list(self.processes.values())
        # The directory is removed with its data, so a slow, orderly shutdown has no benefit.
        for identity in identities:
            identity.send(signal.SIGKILL)
        wait_until_gone(identities, 10.0)
        remove_from_memory(self.directory, self.brokers)


def _registered(admin: AdminClient) -> set[int]:
    try:
        described = admin.describe_cluster(request_timeout=5).result(timeout=5)
    except Exception:  # noqa: BLE001 - no broker answers yet, with any error
        return set()
    return {node.id for node in described.nodes}


def cluster_command(name: str, directory: Path) -> str:
    """Return the command that acts on this directory; without `--dir` it would act on the default one."""
    where = "" if directory == Cluster.default_directory() else f" --dir {shlex.quote(str(directory))}"
    return f"azimuth cluster {name}{where}"


def _take_over(directory: Path) -> None:
    if not directory.exists() or not any(directory.iterdir()):
        directory.mkdir(parents=True, exist_ok=True)
        return
    if not (directory / "cluster.json").exists() and not (directory / "log4j2.xml").exists():
        raise ClusterError(f"{directory} holds other files: name an empty directory for the cluster")
    if (directory / "cluster.json").exists():
        before = Cluster.open(directory)
        if any(status.pid is not None for status in before.status()):
            raise ClusterError(
                f"a cluster runs in {directory}: use it, or stop it with `{cluster_command('down', directory)}`"
            )
        remove_from_memory(directory, before.brokers)
    shutil.rmtree(directory)
    directory.mkdir(parents=True)


def _check_space(directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if free < _NEEDED_BYTES:
        raise ClusterError(
            f"{free / 1e9:.2f} GB free under {directory}, {_NEEDED_BYTES / 1e9:.0f} GB needed: "
            f"free some, or name another directory"
        )
    if not os.access(directory, os.W_OK):
        raise ClusterError(f"{directory} cannot be written: name another directory")
