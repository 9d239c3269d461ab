"""A cluster that wants a password, and allows its users only what a rule allows."""

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from spark_sink.demo.cluster import Cluster
from tests.secured_broker import guarded_access, scram_client
from tests.waiting import wait_until

ADMIN, PASSWORD = secrets.token_hex(12), f"canary-{secrets.token_hex(12)}"
OPEN, SEEN, CLOSED, DEAD = "checks.open", "checks.seen", "checks.closed", "checks.dead"
GROUPS = ("checks", "checks.lane-0", "azimuth.fleet.checks")


def client(user: str = "ingest", password: str = PASSWORD) -> dict[str, str]:
    """Properties of a user."""
    return scram_client(user, password)


def rule(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    """What `ingest` may do."""
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ingest", "*", operation, allow)


@contextlib.contextmanager
def guarded_cluster(folder: Path) -> Iterator[Cluster]:
    """One broker; `ingest` may read one topic, describe another, and join the groups of the tests; `probe` nothing."""
    access = guarded_access({"admin": ADMIN, "ingest": PASSWORD, "probe": PASSWORD})
    with Cluster.up(folder, racks=["az-a"], tied=True, access=access) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **access.client})
        for made in admin.create_topics([NewTopic(name, 2, 1) for name in (OPEN, SEEN, CLOSED, DEAD)]).values():
            made.result(30)
        rules = [rule(ResourceType.GROUP, name, AclOperation.READ) for name in GROUPS]
        rules += [rule(ResourceType.TOPIC, OPEN, AclOperation.READ)]
        rules += [rule(ResourceType.TOPIC, SEEN, AclOperation.DESCRIBE)]
        for done in admin.create_acls(rules).values():
            done.result(30)
        ingest = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **client()})
        wait_until(lambda: {OPEN, SEEN} <= ingest.list_topics(timeout=10).topics.keys())
        yield cluster
