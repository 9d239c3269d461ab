"""One configuration with librdkafka's names, divided between two clients."""

import re
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from assignors import MembershipError
from assignors.consumer.consumer_errors import ArgumentError
from assignors.consumer.split_configuration import read

LEAST = {"bootstrap.servers": "a:1,b:2", "group.id": "g"}


def test_each_client_gets_what_it_knows() -> None:
    """Membership goes to kafka-python, fetching to librdkafka, and security to both."""
    made = read(
        {
            **LEAST,
            "session.timeout.ms": "6000",
            "group.instance.id": "one",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "me",
            "ssl.ca.location": "/ca",
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 50,
        },
        {"api_version": (2, 0)},
    )
    assert made.member == {
        "bootstrap_servers": ["a:1", "b:2"],
        "group_id": "g",
        "isolation_level": "read_committed",
        "session_timeout_ms": 6000,
        "group_instance_id": "one",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "ssl_cafile": "/ca",
        "max_poll_interval_ms": 300_000,
        "api_version": (2, 0),
    }
    assert made.fetching["group.id"] == "g"
    assert made.fetching["auto.offset.reset"] == "earliest"
    assert made.fetching["fetch.queue.backoff.ms"] == 50
    assert made.fetching["enable.auto.commit"] is False
    assert "group.instance.id" not in made.fetching


@pytest.mark.parametrize(("given", "waits_ms"), [(None, 20_000), (60_000, 20_000), ("6000", 6_000)])
def test_a_commit_outside_of_a_group_waits_twenty_seconds_at_most_for_a_coordinator(
    given: str | int | None, waits_ms: int
) -> None:
    """Librdkafka's limit is the session timeout, 45 s by default: close() waited that long."""
    config = LEAST if given is None else {**LEAST, "session.timeout.ms": given}
    assert read(config, {}).fetching["session.timeout.ms"] == waits_ms


@pytest.mark.parametrize(
    ("given", "begins"),
    [("Earliest", OFFSET_BEGINNING), ("beginning", OFFSET_BEGINNING), (None, OFFSET_END), ("end", OFFSET_END)],
)
def test_where_nothing_is_committed_begins_where_librdkafka_would(given: str | None, begins: int) -> None:
    """All its values are known, and so is its default."""
    assert read(LEAST if given is None else {**LEAST, "auto.offset.reset": given}, {}).reset == begins


BROKER = {**LEAST, "group.protocol": "consumer"}


def test_the_member_of_a_broker_gets_librdkafkas_properties_and_the_fetching_client_stays_outside_the_group() -> None:
    """A second client with the protocol would join as a second member."""
    made = read({**BROKER, "group.remote.assignor": "azimuth-hrw", "group.instance.id": "a", "on_commit": print}, {})
    assert made.broker_assigned == {**BROKER, "group.remote.assignor": "azimuth-hrw", "group.instance.id": "a"}
    assert not {"group.protocol", "group.remote.assignor", "group.instance.id"} & made.fetching.keys()
    assert read(LEAST, {}).broker_assigned is None


def test_settings_of_kafka_python_are_refused_where_the_broker_assigns() -> None:
    """kafka-python has no part in it, so they would have no effect."""
    with pytest.raises(MembershipError, match="settings of kafka-python"):
        read(BROKER, {"retry_backoff_ms": 5})


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 5.0),
        ({"enable.auto.commit": "false"}, None),
        ({"auto.commit.interval.ms": 100}, 0.1),
        ({"enable.auto.commit": "1"}, 5.0),
    ],
)
def test_automatic_commits_are_on_unless_switched_off(given: dict[str, Any], seconds: float | None) -> None:
    """As in librdkafka; but it is this consumer that commits, with its generation."""
    assert read({**LEAST, **given}, {}).auto_commit_s == seconds


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param({"group.id": "g"}, "bootstrap.servers is missing", id="servers"),
        pytest.param({"bootstrap.servers": "a"}, "group.id is missing", id="group"),
        # librdkafka's client ends the process.
        pytest.param({**LEAST, "group.id": " "}, "group.id is missing", id="a blank group"),
        pytest.param({**LEAST, "bootstrap.servers": ["a:1"]}, "bootstrap.servers=['a:1']: need one text", id="a list"),
        pytest.param({**LEAST, "partition.assignment.strategy": "range"}, "assignors=[...]", id="strategy"),
        pytest.param({**LEAST, "group.protocol": "streams"}, "need classic or consumer", id="protocol"),
        pytest.param({**LEAST, "group.remote.assignor": "azimuth-hrw"}, "needs group.protocol=consumer", id="remote"),
        pytest.param(
            {**BROKER, "session.timeout.ms": 6000}, "group.consumer.session.timeout.ms", id="broker's session"
        ),
        pytest.param({**BROKER, "heartbeat.interval.ms": 1}, "heartbeat.interval.ms=1: with", id="broker's heartbeat"),
        pytest.param(
            {**BROKER, "partition.assignment.strategy": "range"}, "group.remote.assignor", id="broker assigns"
        ),
        pytest.param({**LEAST, "max.poll.interval.ms": "5m"}, "max.poll.interval.ms='5m'", id="no number"),
        pytest.param({**LEAST, "enable.auto.commit": "yes"}, "enable.auto.commit='yes'", id="no boolean"),
        pytest.param({**LEAST, "on_commit": 5}, "on_commit=5", id="no callback"),
        pytest.param({**LEAST, "logger": 5}, "logger=5: need a logging.Logger", id="no logger"),
        pytest.param({**LEAST, "session.timeout.ms": "6s"}, "session.timeout.ms='6s'", id="no number for the member"),
        pytest.param({**LEAST, "heartbeat.interval.ms": -1}, "heartbeat.interval.ms=-1, need 1", id="no heartbeat"),
        pytest.param({**LEAST, "auto.commit.interval.ms": -5}, "interval.ms=-5, need 0", id="commits before now"),
        pytest.param(
            {**LEAST, "max.poll.interval.ms": 30_000}, "need session.timeout.ms=45000", id="below the session"
        ),
    ],
)
def test_what_has_another_place_is_refused(config: dict[str, Any], said: str) -> None:
    """An error is better than a strategy that has no effect."""
    with pytest.raises(MembershipError, match=re.escape(said)):
        read(config, {})


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        pytest.param({"group.protocol": "classic"}, ("group_id", "g"), id="the protocol that this is"),
        pytest.param(
            {"metadata.broker.list": "a:1"}, ("bootstrap_servers", ["a:1"]), id="an older name of the servers"
        ),
        pytest.param(
            {"bootstrap.servers": "a:1, b:2"}, ("bootstrap_servers", ["a:1", "b:2"]), id="servers with blanks"
        ),
        pytest.param({"client.rack": "az-a"}, ("client_rack", "az-a"), id="the rack"),
        pytest.param(
            {"sasl.kerberos.service.name": "broker"},
            ("sasl_kerberos_service_name", "broker"),
            id="the brokers' name in Kerberos",
        ),
        pytest.param(
            {"bootstrap.servers": "b:1", "metadata.broker.list": "a:1"},
            ("bootstrap_servers", ["a:1"]),
            id="the last of two names",
        ),
        pytest.param({"sasl.password": 12345}, ("sasl_plain_password", "12345"), id="a password of digits"),
        pytest.param({"sasl.username": " me"}, ("sasl_plain_username", "me"), id="a blank before a text"),
        pytest.param({"group.id": " g"}, ("group_id", "g"), id="a blank before the group"),
        pytest.param({"group.id": 0}, ("group_id", "0"), id="the group 0"),
        pytest.param({"isolation.level": " Read_Uncommitted"}, ("isolation_level", "read_uncommitted"), id="isolation"),
        pytest.param({"security.protocol": " ssl"}, ("security_protocol", "SSL"), id="a blank before a word"),
        pytest.param({"group.protocol": " Classic"}, ("group_id", "g"), id="a blank before the protocol"),
        pytest.param({"session.timeout.ms": "027340"}, ("session_timeout_ms", 12_000), id="octal digits"),
        pytest.param({"reconnect.backoff.ms": 100}, ("reconnect_backoff_ms", 100), id="the pause between connections"),
        pytest.param({"socket.timeout.ms": 100}, ("fetch_max_wait_ms", 99), id="a short timeout"),
        pytest.param(
            {"topic.metadata.refresh.interval.ms": -1}, ("metadata_max_age_ms", 2**31 - 1), id="metadata once"
        ),
        pytest.param({"allow.auto.create.topics": "true"}, ("allow_auto_create_topics", True), id="topics are created"),
    ],
)
def test_librdkafkas_words_are_understood(given: dict[str, Any], setting: tuple[str, Any]) -> None:
    """A configuration of confluent_kafka.Consumer works unchanged."""
    least = {"group.id": "g"} if "metadata.broker.list" in given else LEAST
    made = read({**least, **given}, {})
    assert made.member[setting[0]] == setting[1]
    assert "group.protocol" not in made.fetching


@pytest.mark.parametrize(
    "given",
    [
        {"auto.offset.reset": "latest", "default.topic.config": {"auto.offset.reset": "earliest"}},
        {"auto.offset.reset": "latest", "topic.auto.offset.reset": "earliest"},
        {"auto.offset.reset": " earliest"},
    ],
    ids=str,
)
def test_reset_of_the_topic_configuration_counts(given: dict[str, Any]) -> None:
    """The deprecated `default.topic.config` has precedence in confluent-kafka; ignored, it skipped whole topics."""
    assert read({**LEAST, **given}, {}).reset == OFFSET_BEGINNING
    assert read({**LEAST, "default.topic.config": None}, {}).reset == OFFSET_END


def test_other_properties_of_the_topic_configuration_count_too() -> None:
    """As in confluent-kafka. The fetching client committed by itself, outside of the group's generation."""
    made = read({**LEAST, "enable.auto.commit": False, "default.topic.config": {"enable.auto.commit": True}}, {})
    assert made.auto_commit_s == 5.0
    assert made.fetching["enable.auto.commit"] is False
    assert "default.topic.config" not in made.fetching


@pytest.mark.parametrize("name", ["client.id", "client.rack", "group.id", "group.instance.id"])
def test_names_may_be_numbers(name: str) -> None:
    """A member with a number as a name never joined, because kafka-python cannot send it; librdkafka can."""
    assert read({**LEAST, name: 7}, {}).member[name.replace(".", "_")] == "7"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("name", ["client.id", "client.rack", "group.id", "group.instance.id", "sasl.password"])
@pytest.mark.parametrize("value", ["\0g", " \0", "g\0h", "\ud800", "g\udfff"], ids=ascii)
def test_a_text_that_librdkafka_cannot_read_is_refused(name: str, value: str, protocol: str) -> None:
    """Such a `group.id` ended the process, in an assertion; a `group.instance.id` failed in `subscribe`."""
    with pytest.raises(ArgumentError, match=f"^{name}: its value has a null character or half a letter") as refused:
        read({**LEAST, "group.protocol": protocol, name: value}, {})
    assert value not in str(refused.value)


def test_other_blanks_than_those_of_c_belong_to_a_name() -> None:
    """The fetching client, which commits without a subscription, had another group than the member."""
    assert read({**LEAST, "group.id": "\u00a0g"}, {}).member["group_id"] == "\u00a0g"


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_name_may_be_absent(nothing: str | None) -> None:
    """As text it would be the name "None", which all members would share."""
    names = ("client.id", "client.rack", "group.instance.id", "sasl.kerberos.service.name", "ssl.ca.location")
    assert read({**LEAST, **dict.fromkeys(names, nothing)}, {}).member == read(LEAST, {}).member


@pytest.mark.parametrize("method", ["oidc", "OIDC"])
def test_tokens_of_an_issuer_need_the_brokers_protocol(method: str) -> None:
    """kafka-python's member cannot ask an issuer, and a missing token would end it in the background."""
    config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "sasl.oauthbearer.method": method}
    with pytest.raises(ArgumentError, match="cannot request tokens from an issuer; return them in oauth_cb, or use "):
        read(config, {})
    assert read({**config, "group.protocol": "consumer"}, {}).broker_assigned is not None
    assert read({**config, "sasl.oauthbearer.method": "default"}, {}).member
