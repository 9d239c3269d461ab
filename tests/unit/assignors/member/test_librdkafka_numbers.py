"""Numbers in librdkafka's properties."""

import pytest

from assignors.member.librdkafka_numbers import milliseconds


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("6000", 6000),
        (6000, 6000),
        (" 6000 ", 6000),
        ("6000.7", 6000),
        ("0x1770", 6000),
        (None, 7),
        ("soon", 7),
        ("inf", 7),
    ],
)
def test_numbers_are_read_as_librdkafka_reads_them(given: object, read: int) -> None:
    """`subscribe` raised a ValueError for values that the constructor of librdkafka's client accepts."""
    assert milliseconds(given, 7) == read
