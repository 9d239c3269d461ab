"""Producers whose user may not do everything, on brokers with an authorizer."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaProducer
from kafka.errors import TopicAuthorizationFailedError

from producer import AZAwarePartitioner, AZAwareProducer
from spark_sink.demo.cluster import Cluster
from spark_sink.kafka.client_property_names import kafka_python_config
from tests.secured_broker import guarded_access, scram_client
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ADMIN, WRITER = secrets.token_hex(12), secrets.token_hex(12)
OPEN, CLOSED = "rights.open", "rights.closed"


def client(user: str, password: str) -> dict[str, Any]:
    """Properties of a user."""
    return {**scram_client(user, password), "log_level": 0}


def rule(topic: str, operation: AclOperation) -> AclBinding:
    """The writer may do this with a topic."""
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:writer",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two zones whose brokers allow nothing that no rule allows; `writer` may write to one topic of two."""
    access = guarded_access({"admin": ADMIN, "writer": WRITER})
    folder = tmp_path_factory.mktemp("guarded") / "cluster"
    with Cluster.up(folder, racks=["az-a", "az-b"], tied=True, access=access) as cluster:
        admin = administrator(cluster)
        for made in admin.create_topics([NewTopic(topic, 4, 1) for topic in (OPEN, CLOSED)]).values():
            made.result(30)
        for done in admin.create_acls([rule(OPEN, AclOperation.WRITE)]).values():
            done.result(30)
        wait_until(lambda: all(may_see(broker.port, OPEN) for broker in cluster.brokers))
        yield cluster


def may_see(port: int, topic: str) -> bool:
    """Return whether a broker knows by now that the writer may see a topic."""
    writer = AdminClient({**client("writer", WRITER), "bootstrap.servers": f"127.0.0.1:{port}"})
    return writer.list_topics(topic, timeout=10).topics[topic].error is None


def administrator(cluster: Cluster) -> AdminClient:
    """The user that may do everything."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **client("admin", ADMIN)})


def settings(cluster: Cluster) -> dict[str, Any]:
    """A producer of the writer in az-a."""
    return {"bootstrap.servers": cluster.bootstrap_servers, "client.rack": "az-a", **client("writer", WRITER)}


def test_the_right_to_write_is_enough_to_stay_local(guarded: Cluster) -> None:
    """Leaders and racks can be read without a right on the cluster; no warning, which would be an error here."""
    with AZAwareProducer(settings(guarded), keys="local-hrw") as producer:
        for number in range(100):
            producer.produce(OPEN, b"v", f"{number}" if number % 2 else None)
        assert producer.flush(30) == 0
        traffic = producer.traffic()
    assert (traffic.local.records, traffic.cross.records, traffic.unknown.records) == (100, 0, 0)


def test_a_topic_without_rights_is_a_named_error_and_heals(guarded: Cluster) -> None:
    """The base class's own error, nothing counted, the other topic undisturbed; found by itself when allowed."""
    admin = administrator(guarded)
    with AZAwareProducer(settings(guarded)) as producer:
        with pytest.raises(KafkaException, match=r"[Aa]uthorization failed"):
            producer.produce(CLOSED, b"v")
        assert producer.traffic().unknown.records == producer.traffic().cross.records == 0
        producer.produce(OPEN, b"v")
        assert producer.flush(30) == 0
        assert producer.traffic().local.records == 1
        for done in admin.create_acls([rule(CLOSED, AclOperation.WRITE)]).values():
            done.result(30)
        try:
            wait_until(lambda: CLOSED in producer._kafka_azimuth.topics_in_use.partitioners, 30)
            producer.produce(CLOSED, b"v")
            assert producer.flush(30) == 0
            assert producer.traffic().local.records == 2
        finally:
            only = AclBindingFilter(
                ResourceType.TOPIC,
                CLOSED,
                ResourcePatternType.LITERAL,
                None,  # type: ignore[arg-type] # anybody; its annotation forgets that a filter may leave things out
                None,  # type: ignore[arg-type] # from anywhere
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
            for done in admin.delete_acls([only]).values():
                done.result(30)


def test_kafka_python_names_the_topic_without_rights(guarded: Cluster) -> None:
    """Its own error for a topic that it may not see, and locality for one that it may."""
    names = KafkaProducer.DEFAULT_CONFIG
    known = {k: v for k, v in kafka_python_config(settings(guarded)).items() if k in names}
    partitioner = AZAwarePartitioner(rack="az-a")
    other = KafkaProducer(**known, partitioner=partitioner, max_block_ms=15_000)
    with pytest.raises(TopicAuthorizationFailedError):
        other.send(CLOSED, b"v").get(15)
    for _ in range(20):
        other.send(OPEN, b"v")
    other.flush(30)
    assert (partitioner.traffic().local.records, partitioner.traffic().cross.records) == (20, 0)
    other.close()
