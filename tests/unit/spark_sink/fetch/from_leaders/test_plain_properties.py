"""A task reads from the leaders itself only where nothing is asked that only librdkafka does."""

import pytest
from confluent_kafka import Consumer

from spark_sink.fetch.from_leaders.plain_properties import bootstrap_addresses, bootstrap_order, plain, read_committed
from spark_sink.kafka.client_property_names import librdkafka_config
from spark_sink.options.source_options import SourceOptions

OPTIONS = {"kafka.bootstrap.servers": "a:1", "kafka.group.id": "g", "subscribe": "t"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"kafka.security.protocol": "PLAINTEXT", "rack": "az-a", "agent": "one"}, True),
        ({"kafka.session.timeout.ms": "6000", "kafka.isolation.level": "read_uncommitted"}, True),
        ({"kafka.security.protocol": "SSL"}, False),
        ({"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}, False),
        ({"kafka.ssl.truststore.location": "/ca.pem"}, False),
        ({"kafka.check.crcs": "true"}, False),
        ({"kafka.fetch.max.bytes": "0x100000"}, False),
        ({"kafka.broker.address.family": "v6"}, False),
    ],
)
def test_only_known_properties_of_a_plain_cluster_allow_it(given: dict[str, str], *, expected: bool) -> None:
    """A property whose effect would be missing is a broken promise, and one of security a leak."""
    options = SourceOptions.parse({**OPTIONS, **given})
    assert options.fetch.record_batches
    assert plain(librdkafka_config(options.fetch.kafka)) is expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ({}, True),
        ({"isolation.level": "read_committed"}, True),
        ({"isolation.level": "READ_COMMITTED"}, True),
        ({"isolation.level": " Read_Committed"}, True),
        ({"isolation.level": "READ_UNCOMMITTED"}, False),
    ],
)
def test_aborted_records_are_read_only_if_librdkafka_would_read_them(level: dict[str, str], *, expected: bool) -> None:
    """It takes the words in any case and after blanks; a word that is not understood must not show such records."""
    Consumer({"group.id": "g", **level}).close()
    assert read_committed(level) is expected


def test_it_can_be_turned_off() -> None:
    """For a broker that does not answer such requests as Kafka's do."""
    assert SourceOptions.parse(OPTIONS).fetch.record_batches
    assert not SourceOptions.parse({**OPTIONS, "fetchRecordBatches": "false"}).fetch.record_batches


def test_bootstrap_servers_are_read_in_each_form_of_librdkafka() -> None:
    """With a protocol in front, without a port, and for IPv6."""
    given = {"bootstrap.servers": "a:1, PLAINTEXT://b:2,c,[::1]:3,[::2],x:y"}
    assert bootstrap_addresses(given) == [("a", 1), ("b", 2), ("c", 9092), ("::1", 3), ("::2", 9092)]
    assert bootstrap_addresses({"metadata.broker.list": "d:4"}) == [("d", 4)]


def test_a_bootstrap_server_that_failed_is_asked_last() -> None:
    """Each task would wait five seconds for a server that is silent; and not all tasks ask the same server."""
    servers = [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
    orders = {tuple(bootstrap_order(servers, {("a", 1): 9.0, ("c", 1): 5.0})) for _ in range(100)}
    assert orders == {(("b", 1), ("d", 1), ("c", 1), ("a", 1)), (("d", 1), ("b", 1), ("c", 1), ("a", 1))}
