"""A task reads from the leaders itself only where nothing is asked that only librdkafka does."""

import pytest

from spark_sink.fetch.from_leaders.plain_properties import bootstrap_addresses, plain
from spark_sink.kafka.client_properties import librdkafka_config
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
        ({"kafka.broker.address.family": "v6"}, False),
    ],
)
def test_only_known_properties_of_a_plain_cluster_allow_it(given: dict[str, str], *, expected: bool) -> None:
    """A property whose effect would be missing is a broken promise, and one of security a leak."""
    options = SourceOptions.parse({**OPTIONS, **given, "fetchRecordBatches": "true"})
    assert options.fetch.record_batches
    assert plain(librdkafka_config(options.fetch.kafka)) is expected


def test_it_is_off_by_default() -> None:
    """Recovery is librdkafka's, which more people use."""
    assert not SourceOptions.parse(OPTIONS).fetch.record_batches


def test_bootstrap_servers_are_read_in_each_form_of_librdkafka() -> None:
    """With a protocol in front, without a port, and for IPv6."""
    given = {"bootstrap.servers": "a:1, PLAINTEXT://b:2,c,[::1]:3,[::2],x:y"}
    assert bootstrap_addresses(given) == [("a", 1), ("b", 2), ("c", 9092), ("::1", 3), ("::2", 9092)]
    assert bootstrap_addresses({"metadata.broker.list": "d:4"}) == [("d", 4)]
