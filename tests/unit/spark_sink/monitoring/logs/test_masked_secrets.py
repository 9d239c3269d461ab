"""Secrets never appear in the log."""

import pytest

from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values


def test_secrets_are_found_by_their_names_and_in_addresses() -> None:
    """Settings nest, and an address may have a password that is escaped."""
    settings = {
        "sources": {"eu": {"kafka": {"sasl.password": "hunter22", "sasl.username": "reader"}}},
        "storage": {"AWS_SECRET_ACCESS_KEY": "abc/def", "AWS_REGION": "eu", "azure_storage_account_key": "k3y"},
        "kafka": {"ssl.key.location": "/etc/key.pem", "ssl.key.password": "pw", "sasl.jaas.config": "x required;"},
        "source": [{"schema.registry.basic.auth.user.info": "u:p"}],
        "database": "postgresql://me:p%40ss@db/x",
        "none": None,
        "number": 3,
    }
    assert secret_values(settings) == {
        "hunter22", "abc/def", "k3y", "pw", "x required;", "u:p", "p", "p%40ss", "p@ss",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refused: hunter22!", "refused: ***!"),
        ("postgresql://me:other@db/x is away", "postgresql://***@db/x is away"),
        ('jaas: password="abc" ok', "jaas: password=*** ok"),
        ("sasl.password=abc, next", "sasl.password=***, next"),
        ("a pw b, pwd", "a *** b, pwd"),
        ("http://host:80/path", "http://host:80/path"),
        ("sasl_plaintext://host:1/bootstrap: a@b", "sasl_plaintext://host:1/bootstrap: a@b"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    """Known secrets by their value, others by their place; a short one only as a word of its own."""
    assert Mask(["hunter22", "pw"])(text) == shown


def test_nothing_is_hidden_without_secrets() -> None:
    """An empty value must not match everywhere."""
    assert Mask([""])("a text") == "a text"
