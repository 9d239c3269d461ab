"""Both consumers on brokers with rights, certificates, tokens and passwords: the same errors, and the same ways in."""

import base64
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub has no __all__
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from assignors import GroupConsumer, MembershipError
from spark_sink.demo.cluster import Access, Cluster
from tests.secured_broker import secured_properties, write_broker_certificate
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.matrix]

BOTH: Final = (Consumer, GroupConsumer)
PROTOCOLS: Final = ("classic", "consumer")
USERS: Final = {"admin": "admins", "guest": "guests", "rotated": "first"}
KEYSTORE: Final = "keystores"
PARTITIONS, RECORDS = 2, 10
PATIENCE_S: Final = 120.0
Errors = set[tuple[str | None, int]]
LITERAL: Final = ResourcePatternType.LITERAL


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key and its certificate, which is its own authority, also as a keystore."""
    folder = tmp_path_factory.mktemp("certificates")
    write_broker_certificate(folder)
    command = ["openssl", "pkcs12", "-export", "-in", "ca.pem", "-inkey", "key.pem", "-passout", f"pass:{KEYSTORE}"]
    subprocess.run([*command, "-out", "key.p12"], cwd=folder, check=True, capture_output=True)
    return folder


def by_files(folder: Path) -> dict[str, Any]:
    """Authority, certificate and key as files."""
    authority, key = str(folder / "ca.pem"), str(folder / "key.pem")
    return {"ssl.ca.location": authority, "ssl.certificate.location": authority, "ssl.key.location": key}


def by_texts(folder: Path) -> dict[str, Any]:
    """The same as texts."""
    authority, key = (folder / "ca.pem").read_text(), (folder / "key.pem").read_text()
    return {"ssl.ca.pem": authority, "ssl.certificate.pem": authority, "ssl.key.pem": key}


def by_keystore(folder: Path) -> dict[str, Any]:
    """Certificate and key in one file with a password."""
    keystore = {"ssl.keystore.location": str(folder / "key.p12"), "ssl.keystore.password": KEYSTORE}
    return {"ssl.ca.location": str(folder / "ca.pem"), **keystore}


def by_password(user: str) -> dict[str, Any]:
    """A user and a password."""
    sasl = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user, "sasl.password": USERS[user]}
    return {"security.protocol": "SASL_SSL", **sasl}


def by_token(tokens: list[str]) -> dict[str, Any]:
    """A token without a signature, which these brokers accept; each one given is added to `tokens`."""

    def part(content: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    def token(config: str) -> tuple[str, float]:
        until = time.time() + 600
        claims: dict[str, object] = {"sub": "admin", "iat": int(time.time()), "exp": int(until), "scope": config}
        tokens.append(f"{part({'alg': 'none'})}.{part(claims)}.")
        return tokens[-1], until

    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
        "sasl.oauthbearer.config": "reads",
    }


@pytest.fixture(scope="module")
def secured(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker that wants a certificate, and a password or a token."""
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    broker = secured_properties(certificates, USERS["admin"]) | {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        "listener.name.client.oauthbearer.sasl.jaas.config": f'{oauth} unsecuredLoginStringClaim_sub="admin";',
        "ssl.client.auth": "required",
        "listener.name.client.ssl.client.auth": "required",  # without this Kafka switches it off for SASL_SSL
    }
    access = Access(broker=broker, scram=USERS, client=by_password("admin") | by_files(certificates))
    folder = tmp_path_factory.mktemp("secured") / "cluster"
    with Cluster.up(folder, racks=["az-a"], tied=True, timeout_s=PATIENCE_S, access=access) as cluster:
        yield cluster


class Site:
    """A topic of one test, its records, and the rights to it and to a group."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.config = {"bootstrap.servers": cluster.bootstrap_servers, **by_password("admin"), **by_files(folder)}
        self.admin = AdminClient({**self.config, "log_level": 0})
        self.topic = f"s{uuid.uuid4().hex[:8]}"
        self.group = f"{self.topic}-group"
        self._wait(self.admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)]))
        self.fill()

    def fill(self) -> None:
        """Write records to each partition."""
        producer = Producer({**self.config, "log_level": 0})
        for number in range(RECORDS * PARTITIONS):
            producer.produce(self.topic, str(number), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0

    def rule(self, kind: ResourceType, name: str, operation: AclOperation, *, allow: bool = True) -> AclBinding:
        """Give the guest a right, or deny it; where a resource has rules, what they do not allow is denied."""
        permission = AclPermissionType.ALLOW if allow else AclPermissionType.DENY
        made = AclBinding(kind, name, LITERAL, "User:guest", "*", operation, permission)
        self._wait(self.admin.create_acls([made]))
        return made

    def remove(self, rule: AclBinding) -> None:
        """Remove a rule."""
        permission = rule.permission_type
        found = AclBindingFilter(rule.restype, rule.name, LITERAL, "User:guest", "*", rule.operation, permission)
        self._wait(self.admin.delete_acls([found]))

    def make(self, kind: type, config: dict[str, Any], protocol: str = "classic", **more: Any) -> Any:
        """Create a consumer of the group, new for each kind."""
        classic = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300} if protocol == "classic" else {}
        return kind(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": self.group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
                **classic,
                **config,
                **more,
            }
        )

    @staticmethod
    def _wait(futures: dict[Any, Any]) -> None:
        for made in futures.values():
            made.result(30)


@pytest.fixture
def site(secured: Cluster, certificates: Path) -> Site:
    """A topic of this test only."""
    return Site(secured, certificates)


def seen(
    one: Any,
    until: Callable[[int, Errors], bool],
) -> tuple[int, Errors]:
    """Poll until the number of records and the distinct errors are enough."""
    records, errors = 0, Errors()
    end = time.monotonic() + PATIENCE_S
    while not until(records, errors):
        assert time.monotonic() < end, (records, errors)
        message = one.poll(0.1)
        if message is not None and message.error() is not None:
            errors.add((message.topic(), message.error().code()))
        records += message is not None and message.error() is None
    return records, errors


def read_all(one: Any) -> int:
    """Read the records of one `fill`."""
    return seen(one, lambda records, _: records >= RECORDS * PARTITIONS)[0]


@pytest.mark.parametrize(
    ("resource", "described", "protocol"),
    [
        pytest.param("group", False, "classic", id="hidden group"),
        pytest.param("group", True, "classic", id="group that may not be joined"),
        pytest.param("group", False, "consumer", id="hidden group of the broker"),
        pytest.param("topic", False, "classic", id="hidden topic"),
        pytest.param("topic", True, "classic", id="unreadable topic"),
        pytest.param("topic", False, "consumer", id="hidden topic, the broker assigns"),
        pytest.param("topic", True, "consumer", id="unreadable topic, the broker assigns"),
    ],
)
def test_a_right_that_is_granted_later_is_waited_for(site: Site, resource: str, described: bool, protocol: str) -> None:  # noqa: FBT001 -- a case
    """Both report the same error, and read when the right is granted: operators grant rights to running programs."""
    kind = ResourceType.GROUP if resource == "group" else ResourceType.TOPIC
    name = site.group if resource == "group" else site.topic
    results = []
    for of_consumer in BOTH:
        rules = [site.rule(kind, name, AclOperation.READ, allow=False)]
        rules += [site.rule(kind, name, AclOperation.DESCRIBE)] if described else []
        one = site.make(of_consumer, by_password("guest") | by_files(site.folder), protocol)
        try:
            one.subscribe([site.topic])
            errors = seen(one, lambda _, errors: bool(errors))[1]
            rules.append(site.rule(kind, name, AclOperation.READ))
            site.remove(rules[0])
            results.append((errors, read_all(one)))
        finally:
            one.close()
        for rule in rules[1:]:
            site.remove(rule)
    assert results[0] == results[1]


def test_a_known_group_of_the_broker_refuses_for_good(site: Site) -> None:
    """Librdkafka ends the member with a fatal error, which is one message of the bare consumer, and no record follows.

    Ours raises the broker's error in each call instead: it cannot be overlooked.
    """
    site.rule(ResourceType.GROUP, site.group, AclOperation.READ, allow=False)
    site.rule(ResourceType.GROUP, site.group, AclOperation.DESCRIBE)
    bare, ours = (
        site.make(of_consumer, by_password("guest") | by_files(site.folder), "consumer") for of_consumer in BOTH
    )
    try:
        bare.subscribe([site.topic])
        assert seen(bare, lambda _, errors: bool(errors)) == (0, {(None, KafkaError._FATAL)})
        ours.subscribe([site.topic])
        for _ in range(2):
            with pytest.raises(MembershipError, match="Group authorization failed") as refused:
                ours.poll(PATIENCE_S)
            assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    finally:
        ours.close()
        bare.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("identity", [by_files, by_texts, by_keystore], ids=lambda one: one.__name__)
def test_certificates_are_taken_in_each_form(
    site: Site, identity: Callable[[Path], dict[str, Any]], protocol: str
) -> None:
    """The broker demands a certificate of the member and of the client that fetches."""
    for of_consumer in BOTH:
        one = site.make(of_consumer, by_password("guest") | identity(site.folder), protocol)
        try:
            one.subscribe([site.topic])
            assert read_all(one) == RECORDS * PARTITIONS
        finally:
            one.close()


def test_without_a_certificate_no_member_joins(site: Site) -> None:
    """Else the test above would show nothing."""
    config = by_password("guest") | {"ssl.ca.location": str(site.folder / "ca.pem")}
    with site.make(GroupConsumer, config, "consumer") as one, pytest.raises(MembershipError):
        one.subscribe([site.topic])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tokens_of_the_program_are_taken(site: Site, protocol: str) -> None:
    """From `oauth_cb`, by the member and by the client that fetches."""
    for of_consumer in BOTH:
        tokens: list[str] = []
        one = site.make(of_consumer, by_token(tokens) | by_files(site.folder), protocol)
        try:
            one.subscribe([site.topic])
            assert read_all(one) == RECORDS * PARTITIONS
        finally:
            one.close()
        assert tokens


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_password_is_changed_while_consumers_run(site: Site, protocol: str) -> None:
    """The broker forgets the old one and all connections; both wait, hear why, and go on with the new one."""
    for of_consumer in BOTH:
        change_password(site, USERS["rotated"])
        heard: list[int] = []
        config = by_password("rotated") | by_files(site.folder)
        one = site.make(of_consumer, config, protocol, error_cb=codes_into(heard))
        try:
            one.subscribe([site.topic])
            read_all(one)
            committed = one.position(one.assignment())
            change_password(site, "second")
            site.cluster.kill(1)
            site.cluster.start(1, PATIENCE_S)
            refused = partial(_heard_of_authentication, heard)
            seen(one, refused)
            one.set_sasl_credentials("rotated", "second")
            site.fill()
            assert read_all(one) >= RECORDS * PARTITIONS
            wait_until(partial(_poll_and_commit, one, committed), PATIENCE_S)
        finally:
            one.close()


def _poll_and_commit(one: Any, offsets: list[TopicPartition]) -> object:
    """Commit once a member that was away for its session has its partitions again."""
    one.poll(0.1)
    return one.commit(offsets=offsets, asynchronous=False)


def _heard_of_authentication(heard: list[int], *_: object) -> bool:
    return KafkaError._AUTHENTICATION in heard


def codes_into(heard: list[int]) -> Callable[[KafkaError], None]:
    """An `error_cb` that keeps the codes."""
    return lambda error: heard.append(error.code())


def change_password(site: Site, password: str) -> None:
    """Give the user another password, and wait until the broker knows it."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion("rotated", info, password.encode())
    for made in site.admin.alter_user_scram_credentials([change]).values():
        made.result(30)
    config = {**site.config, "sasl.username": "rotated", "sasl.password": password, "log_level": 0}

    def known() -> object:
        return AdminClient(config).list_topics(timeout=5)

    wait_until(known, PATIENCE_S)
