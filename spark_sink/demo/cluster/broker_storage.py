"""Prepares the disk of a broker before its start: settings and formatted storage."""

import re
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from spark_sink.demo.cluster.broker import Access, Broker
from spark_sink.demo.cluster.broker_assignors import class_path
from spark_sink.demo.cluster.broker_process import uninterrupted
from spark_sink.demo.cluster.broker_settings import LOG4J, server_properties
from spark_sink.errors import ClusterError

_IDENTITY = "meta.properties"


def new_cluster_id() -> str:
    """Return a random id, as Kafka writes its UUIDs."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def format_storage(  # noqa: PLR0913, PLR0917 - the parts of a cluster
    directory: Path, brokers: Sequence[Broker], cluster_id: str, access: Access, java: Sequence[str], jars: Path
) -> None:
    """Write each broker's properties and format its storage.

    Kafka's tool formats the storage of the first broker. That of the others differs in two numbers, and each run of
    the tool takes two seconds of processor time.

    Args:
        directory: of the cluster.
        brokers: all of them.
        cluster_id: from `new_cluster_id`.
        access: users and the brokers' own properties.
        java: the command of Java and further options.
        jars: folder of Kafka's jars.

    Raises:
        ClusterError: Kafka's tool failed.
    """
    (directory / "log4j2.xml").write_text(LOG4J)
    controllers = [(b.id, b.controller_port) for b in brokers]
    for broker in brokers:
        _properties(directory, broker).write_text(
            server_properties(
                broker_id=broker.id,
                rack=broker.rack,
                port=broker.port,
                controllers=controllers,
                data=data_directory(directory, broker),
                more=access.broker,
            )
        )
    first, *others = brokers
    _format(first, directory, cluster_id, access, java, jars)
    for broker in others:
        _copy_storage(data_directory(directory, first), data_directory(directory, broker), broker.id)


def _format(  # noqa: PLR0913, PLR0917 - the parts of a cluster
    broker: Broker, directory: Path, cluster_id: str, access: Access, java: Sequence[str], jars: Path
) -> None:
    tool = [*java, "-XX:TieredStopAtLevel=1", "-cp", class_path(jars, directory), "kafka.tools.StorageTool", "format"]
    # Joined by "=", because one id in 64 begins with a dash and would be parsed as a flag.
    more = [f"--cluster-id={cluster_id}"]
    for user, password in access.scram.items():
        more += ["--add-scram", f"SCRAM-SHA-256=[name={user},password={password}]"]
    command = [*tool, "--config", str(_properties(directory, broker)), *more]
    with ExitStack() as stack:
        process = _begin(command, stack)
        printed, _ = process.communicate()
    if process.returncode:
        raise ClusterError(f"the storage of a broker could not be formatted:\n{printed[-1000:]}")


def _begin(command: list[str], stack: ExitStack) -> subprocess.Popen[str]:
    with uninterrupted():
        process = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 -- the command is ours
        )
        # A process that still writes after Ctrl-C would disturb the next run.
        stack.callback(process.kill)
    return process


def _copy_storage(formatted: Path, data: Path, node_id: int) -> None:
    """Copy formatted storage for another broker of the cluster, with its own ids of the node and the directory."""
    shutil.copytree(formatted, data, dirs_exist_ok=True)
    identity = (data / _IDENTITY).read_text()
    for name, value in (("node.id", str(node_id)), ("directory.id", new_cluster_id())):
        identity = re.sub(rf"(?m)^{re.escape(name)}=.*$", f"{name}={value}", identity)
    (data / _IDENTITY).write_text(identity)


def data_directory(directory: Path, broker: Broker) -> Path:
    """Return the folder for a broker's data, in the directory of the cluster."""
    return directory / f"data-{broker.id}"


def _properties(directory: Path, broker: Broker) -> Path:
    return directory / f"broker-{broker.id}.properties"
