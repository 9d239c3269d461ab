"""The archive of the broker's classes: with it a cluster starts with half of the processor time.

It is made together with the download of the jars, by one broker that serves a topic and a group, and then ends in an
orderly way. Brokers without the archive start as Kafka's own scripts start them.
"""

import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from assignors.clients import admin_properties
from spark_sink.agent.start.class_archive import archive_of, recording, using
from spark_sink.agent.start.java_command import find_java
from spark_sink.demo.cluster.broker import Access, Broker
from spark_sink.demo.cluster.broker_process import broker_command, last_lines, launch, wait_until_gone
from spark_sink.demo.cluster.broker_storage import format_storage, new_cluster_id
from spark_sink.demo.cluster.kafka_jars import KAFKA_VERSION, jars_folder, resolve_jars
from spark_sink.demo.cluster.ports import choose_ports
from spark_sink.errors import ClusterError

_TOPIC = "any"
_SERVES_S = 120.0
_ENDS_S = 120.0


def archived_classes(java: str, jars: Path) -> list[str]:
    """Return the JVM's options for a broker, or for a tool of its jars; none where there is no archive."""
    return using(_archive(java, jars)).split()


def fetch_jars(java: str, report: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of the broker's jars; only the first call downloads them, and archives their classes.

    Args:
        java: the command of Java.
        report: called with a line about the progress.

    Raises:
        ClusterError: pyspark is missing, the jars cannot be downloaded, or the cache cannot be written.
    """
    known = jars_folder().is_dir()
    jars = resolve_jars(java, report)
    if not known:
        _archive_classes(java, jars, report)
    return jars


def make_broker_archive(java: str, jars: Path) -> Path:
    """Run one broker for a moment, and archive its classes.

    Raises:
        ClusterError: it did not start, or did not end in time.
        KafkaException: it did not serve a topic.
        OSError: the archive cannot be written.
    """
    archive = _archive(java, jars)
    with tempfile.TemporaryDirectory(prefix="azimuth-") as folder, recording(archive) as options:
        directory = Path(folder)
        port, controller_port = choose_ports(2)
        broker = Broker(id=1, rack="any", port=port, controller_port=controller_port)
        format_storage(directory, [broker], new_cluster_id(), Access(), [java], jars)
        command = broker_command(broker, directory, [java, *options.split()], jars)
        log = directory / "broker.log"
        process = launch(command, log=log, tied=True)
        try:
            _use(f"127.0.0.1:{port}", lambda: process.find() is not None)
            process.send(signal.SIGTERM)
            if wait_until_gone([process], _ENDS_S):
                raise ClusterError(f"the broker did not end in {_ENDS_S:.0f} s:\n{last_lines(log)}")
        finally:
            process.kill()
    return archive


def _archive_classes(java: str, jars: Path, report: Callable[[str], None]) -> None:
    report("archiving the broker's classes, once: later brokers start in half the time")
    with suppress(ClusterError, KafkaException, OSError):  # an archive only saves time
        make_broker_archive(java, jars)


def _archive(java: str, jars: Path) -> Path:
    return archive_of(f"kafka-{KAFKA_VERSION}", java, jars)


def _use(servers: str, lives: Callable[[], bool]) -> None:
    """Write a record, and read it as a member of a group, so that the classes of both are loaded.

    Raises:
        ClusterError: the broker ended, or nothing was read in time.
        KafkaException: the topic could not be made.
    """
    client = admin_properties({"bootstrap.servers": servers, "log_level": 0})
    deadline = time.monotonic() + _SERVES_S
    admin = AdminClient(client)
    admin.create_topics([NewTopic(_TOPIC, 1)], request_timeout=_SERVES_S)[_TOPIC].result(_SERVES_S)
    producer = Producer({**client, "enable.idempotence": True})
    producer.produce(_TOPIC, b"value", b"key")
    producer.flush(_SERVES_S)
    consumer = Consumer({**client, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([_TOPIC])
        while consumer.poll(0.1) is None:
            if not lives() or time.monotonic() > deadline:
                raise ClusterError(f"the broker at {servers} served no record within {_SERVES_S:.0f} s")
    finally:
        consumer.close()


def fetch() -> int:
    """Download the jars and archive their classes before the first cluster needs them.

    A failure is reported, and the first cluster tries again.

    Returns:
        0, or 1 where it failed.
    """
    try:
        java = find_java()
        jars = fetch_jars(java, _print)
        if not archived_classes(java, jars):  # the jars are of an earlier run, with another Java
            _archive_classes(java, jars, _print)
    except ClusterError as error:
        _print(str(error))
        return 1
    return 0


def _print(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - a program's progress
