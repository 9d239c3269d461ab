"""Values of librdkafka's properties: librdkafka itself is the oracle."""

import ctypes
import enum
from typing import Any

import pytest

from assignors.clients.librdkafka_values import flat, text, whole_number
from producer.testing import librdkafka


class Number(enum.IntEnum):
    """A member of an enumeration of numbers is a number."""

    FIVE = 5


class Text(enum.StrEnum):
    """And of texts a text."""

    FIVE = "5"


def read_by_librdkafka(name: str, given: object) -> str | None:
    """Return what librdkafka makes of a value; None if it refuses it."""
    library, size = librdkafka(), ctypes.c_size_t(512)
    config, found = ctypes.c_void_p(library.rd_kafka_conf_new()), ctypes.create_string_buffer(size.value)
    if library.rd_kafka_conf_set(config, name.encode(), str(given).encode(), None, 0) != 0:
        return None
    library.rd_kafka_conf_get(config, name.encode(), found, ctypes.byref(size))
    return found.value.decode()


NUMBERS: list[Any] = [
    6000,
    "6000",
    " 6000 ",
    "6000.7",
    6000.7,
    "0x1770",
    "+0X10",
    "010",
    "019",
    "0",
    "00.0",
    "-1",
    -1.5,
]
NUMBERS += [
    "6000ms",
    "6e3",
    "1,000",
    "1_000",
    "",
    " ",
    "soon",
    "inf",
    float("nan"),
    True,
    None,
    b"5",
    "0x",
    "- 5",
    "\u0665",
]
NUMBERS += [Number.FIVE, Text.FIVE]


@pytest.mark.parametrize("given", NUMBERS, ids=repr)
def test_numbers_are_read_as_librdkafka_reads_them(given: object) -> None:
    """`subscribe` raised a ValueError, or a setting had no effect, for values that librdkafka accepts."""
    read = read_by_librdkafka("topic.metadata.refresh.interval.ms", given)
    assert whole_number(given, 7) == (7 if read is None else int(read))


@pytest.mark.parametrize("given", ["g", " g", "\n\tg ", 7, 0, 7.5, False, b"g", Text.FIVE])
def test_texts_are_read_as_librdkafka_reads_them(given: object) -> None:
    """A member joined the group ` g`, and its records were fetched for the group `g`."""
    assert text(given) == read_by_librdkafka("group.id", given)


def test_a_value_that_is_missing_is_empty() -> None:
    """As text it would be the name None."""
    assert (text(None), text(" ")) == ("", "")


def test_properties_of_topics_replace_all_others() -> None:
    """As confluent-kafka adds them. What is no mapping stays, because the client refuses it."""
    assert flat({"a": 1, "default.topic.config": {"a": 2, "b": 3}}) == {"a": 2, "b": 3}
    assert flat({"a": 1, "default.topic.config": None}) == {"a": 1, "default.topic.config": None}
