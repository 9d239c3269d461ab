"""Librdkafka's properties for the member, which is a client of kafka-python."""

from typing import Any

import pytest

from assignors.clients.kafka_python_names import bootstrap_list, kafka_python_settings


@pytest.mark.parametrize(
    ("servers", "read"),
    [
        ("a:1", ["a:1"]),
        (" a:1 , b:2,", ["a:1", "b:2"]),
        (",a:1", ["a:1"]),
        ("a:1/", ["a:1"]),
        ("a:1/path,b:2 /", ["a:1", "b:2"]),
        ("SSL://a:1/, plaintext://[::1]:2", ["SSL://a:1", "plaintext://[::1]:2"]),
    ],
)
def test_servers_are_read_as_librdkafka_reads_them(servers: str, read: list[str]) -> None:
    """The client that fetches joined with a path after the port; the member failed with `invalid literal for int()`."""
    assert bootstrap_list(servers) == read


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"sasl.password": 12345}, {"sasl_plain_password": "12345"}),
        ({"sasl.username": " me"}, {"sasl_plain_username": "me"}),
        ({"group.id": 7, "client.rack": 2}, {"group_id": "7", "client_rack": "2"}),
        ({"security.protocol": " sasl_ssl"}, {"security_protocol": "SASL_SSL"}),
        ({"allow.auto.create.topics": "False"}, {"allow_auto_create_topics": False}),
        ({"check.crcs": True}, {"check_crcs": True}),
        ({"socket.timeout.ms": "5000.0"}, {"request_timeout_ms": 5000}),
        ({"api.version": (2, 3)}, {"api_version": (2, 3)}),
    ],
    ids=str,
)
def test_values_have_the_types_that_kafka_python_needs(given: dict[str, Any], read: dict[str, Any]) -> None:
    """A password of digits ended no request, and the text `false` let a request create topics."""
    assert kafka_python_settings({"bootstrap.servers": "a:1", **given}) == {"bootstrap_servers": ["a:1"], **read}


@pytest.mark.parametrize("value", ["soon", None, "inf", []])
def test_what_is_no_number_is_one_sentence(value: object) -> None:
    """It did not name the property."""
    with pytest.raises(ValueError, match=r"request\.timeout\.ms=.*, need a whole number"):
        kafka_python_settings({"bootstrap.servers": "a:1", "request.timeout.ms": value})
