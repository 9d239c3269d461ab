"""Librdkafka's properties for the member, which is a client of kafka-python."""

import pytest

from assignors.clients.kafka_python_names import bootstrap_list


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
