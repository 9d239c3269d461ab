"""Prepares the disk of a broker before its start: settings and formatted storage."""

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from spark_sink.demo.cluster.broker import Access, Broker
from spark_sink.demo.cluster.broker_assignors import class_path
from spark_sink.demo.cluster.broker_process import uninterrupted
from spark_sink.demo.cluster.broker_settings import LOG4J, server_properties
from spark_sink.errors import ClusterError


def format_storage(  # noqa: PLR0913 - each is named at the call
    directory: Path, brokers: Sequence[Broker], cluster_id: str, access: Access, *, java: str, jars: Path
) -> None:
    """Write each broker's properties and format its storage, all brokers in parallel.

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
                data=directory / f"data-{broker.id}",
                more=access.broker,
            )
        )
    tool = [java, "-XX:TieredStopAtLevel=1", "-cp", class_path(jars, directory), "kafka.tools.StorageTool", "format"]
    # Joined by "=", because one id in 64 begins with a dash and would be parsed as a flag.
    more = [f"--cluster-id={cluster_id}"]
    for user, password in access.scram.items():
        more += ["--add-scram", f"SCRAM-SHA-256=[name={user},password={password}]"]
    with ExitStack() as stack:
        commands = [[*tool, "--config", str(_properties(directory, broker)), *more] for broker in brokers]
        for process in [_begin(command, stack) for command in commands]:
            printed, _ = process.communicate()
            if process.returncode:
                raise ClusterError(f"the storage of a broker could not be formatted:\n{printed[-1000:]}")


def _properties(directory: Path, broker: Broker) -> Path:
    return directory / f"broker-{broker.id}.properties"


def _begin(command: list[str], stack: ExitStack) -> subprocess.Popen[str]:
    with uninterrupted():
        process = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 -- the command is ours
        )
        # A process that still writes after a failure or Ctrl-C would disturb the next run.
        stack.callback(process.kill)
    return process
