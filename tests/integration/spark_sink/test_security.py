"""TLS, SCRAM and rights from one configuration, through all three clients; and secrets that stay secret."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaProducer

from assignors import GroupConsumer, HRWAssignor
from producer import AZAwarePartitioner, AZAwareProducer
from spark_sink.cli import main
from spark_sink.demo.cluster import Access, Cluster
from spark_sink.kafka.client_property_names import kafka_python_config
from spark_sink.lake.holes_and_doubles import verify
from tests.secured_broker import secured_properties, write_broker_certificate

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CANARY = f"canary-{secrets.token_hex(12)}"
ADMIN = f"admin-{secrets.token_hex(12)}"
OPEN, HIDDEN, UNREADABLE = "safe.open", "safe.hidden", "safe.unreadable"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the brokers' key and certificate, which is its own authority."""
    folder = tmp_path_factory.mktemp("certificates")
    write_broker_certificate(folder)
    return folder


def client(certificates: Path, user: str = "ingest", password: str = CANARY) -> dict[str, str]:
    """Properties as a user writes them once for everything."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": str(certificates / "ca.pem"),
    }


@pytest.fixture(scope="module")
def secured(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker that wants TLS and a password; `ingest` may do everything but read one topic."""
    access = Access(
        broker=secured_properties(certificates, ADMIN),
        scram={"admin": ADMIN, "ingest": CANARY},
        client=client(certificates, "admin", ADMIN),
    )
    folder = tmp_path_factory.mktemp("secured") / "cluster"
    with Cluster.up(folder, racks=["az-a"], tied=True, access=access) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **access.client})
        for made in admin.create_topics([NewTopic(OPEN, 3), NewTopic(HIDDEN, 1), NewTopic(UNREADABLE, 1)]).values():
            made.result(30)
        # Where a topic has rules, what they do not allow is denied.
        rules = [
            _rule(HIDDEN, AclOperation.READ, AclPermissionType.DENY),
            _rule(UNREADABLE, AclOperation.DESCRIBE, AclPermissionType.ALLOW),
        ]
        for made in admin.create_acls(rules).values():
            made.result(30)
        yield cluster


def _rule(topic: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    literal = ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, topic, literal, "User:ingest", "*", operation, permission)


def agent(cluster: Cluster, folder: Path, kafka: dict[str, str], topic: str) -> subprocess.CompletedProcess[str]:
    """`azimuth sink` from a file, until it has caught up."""
    config = folder / "sink.toml"
    lines = [
        f'bootstrap_servers = "{cluster.bootstrap_servers}"',
        'group = "secured"',
        f'table = "{folder / "table"}"',
        f'checkpoint = "{folder / "checkpoint"}"',
        f'subscribe = "{topic}"',
        'trigger = "available-now"',
        'master = "local[1]"',
        "[kafka]",
        *(f'"{name}" = "{value}"' for name, value in kafka.items()),
    ]
    config.write_text("\n".join(lines))
    config.chmod(0o600)
    return subprocess.run(
        [sys.executable, "-m", "spark_sink", "sink", "--config", str(config)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_flights_are_loaded_into_a_secured_cluster(
    secured: Cluster, certificates: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Topics are created, looked up and written to with the properties of the flag."""
    given = [word for pair in client(certificates).items() for word in ("--kafka", "=".join(pair))]
    where = ["--bootstrap-servers", secured.bootstrap_servers, "--zones", "az-a", "--replicas", "1"]
    with pytest.raises(SystemExit) as ended:
        main(["load", *where, "--flights", "20", *given])
    assert not ended.value.code
    said = capsys.readouterr()
    assert said.out.startswith("20 records in ")
    assert CANARY not in said.out + said.err


def test_all_clients_connect_with_one_configuration(secured: Cluster, certificates: Path, tmp_path: Path) -> None:
    """Both producers write, `GroupConsumer` reads, the agent lands; the password stays in its file."""
    config = {"bootstrap.servers": secured.bootstrap_servers, **client(certificates)}
    with AZAwareProducer({**config, "client.rack": "az-a"}) as producer:
        for number in range(100):
            producer.produce(OPEN, str(number))
        assert producer.flush(30) == 0
        assert (producer.traffic().local.records, producer.traffic().unknown.records) == (100, 0)
    known = kafka_python_config(config)
    names = KafkaProducer.DEFAULT_CONFIG
    partitioner = AZAwarePartitioner(rack="az-a")
    other = KafkaProducer(**{k: v for k, v in known.items() if k in names}, partitioner=partitioner)
    for number in range(20):
        other.send(OPEN, str(number).encode())
    other.flush(30)
    other.close()
    with GroupConsumer(
        {**config, "group.id": "reads", "auto.offset.reset": "earliest"}, assignors=[HRWAssignor()]
    ) as one:
        one.subscribe([OPEN])
        read = 0
        while read < 120:
            read += len(one.consume(200, timeout=20.0))
    done = agent(secured, tmp_path, client(certificates), OPEN)
    assert done.returncode == 0, done.stderr[-3000:]
    report = verify(str(tmp_path / "table"))
    assert (report.rows, report.duplicates, report.missing) == (120, 0, 0)
    assert CANARY not in done.stdout + done.stderr
    leaks = [
        str(file)
        for file in tmp_path.rglob("*")
        if file.is_file() and file.name != "sink.toml" and CANARY.encode() in file.read_bytes()
    ]
    assert leaks == []


@pytest.mark.parametrize(
    ("password", "topic", "named"),
    [
        ("wrong", OPEN, "[Aa]uthentication"),
        (CANARY, HIDDEN, f"topic {HIDDEN} on .*: this user may not read there: allow it READ"),
        (CANARY, UNREADABLE, f"topic {UNREADABLE} on .*: this user may not read there: allow it READ"),
    ],
    ids=["wrong password", "hidden topic", "unreadable topic"],
)
def test_what_is_not_allowed_is_one_sentence(  # noqa: PLR0913, PLR0917 - fixtures and cases
    secured: Cluster, certificates: Path, tmp_path: Path, password: str, topic: str, named: str
) -> None:
    """The agent ends with 2 and says what was refused, without the password."""
    admin = {"bootstrap.servers": secured.bootstrap_servers, **client(certificates, "admin", ADMIN)}
    writer = Producer(admin)
    for name in (HIDDEN, UNREADABLE):
        writer.produce(name, b"hidden")
    assert writer.flush(30) == 0
    done = agent(secured, tmp_path, client(certificates, password=password), topic)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2, done.stderr[-3000:]
    assert last.startswith("azimuth: ")
    assert re.search(named, last), last
    assert CANARY not in done.stdout + done.stderr
