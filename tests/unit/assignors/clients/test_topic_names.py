"""The names that Kafka accepts for topics."""

import pytest

from assignors.clients.topic_names import is_topic_name


@pytest.mark.parametrize("name", ["a", "A-Z_0.9", "...", "-", "a" * 249])
def test_legal(name: str) -> None:
    """Kafka makes these."""
    assert is_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "a\n", "a\0", "ä", "\ud800", "a" * 250, None, b"a", 3])
def test_not_legal(name: object) -> None:
    """Kafka refuses these; one that ends in a line break slips through where `$` is taken for the end."""
    assert not is_topic_name(name)
