"""Which position is one after a delivered record."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from assignors.consumer.stored_offsets import StoredOffsets

KEY = ("t", 0)


@pytest.mark.parametrize(
    ("sought", "first"), [(48, 48), (48, 60), (1000, 20), (OFFSET_END, 50), (OFFSET_BEGINNING, 20), (-2005, 45)]
)
def test_a_record_that_was_fetched_and_not_delivered_stores_nothing(sought: int, first: int) -> None:
    """The position is then before this record, wherever the seek has led; -2005 is five records before the end."""
    stored = StoredOffsets()
    stored.start(KEY, sought, 44)
    assert stored.among({KEY: sought} if sought >= 0 else {}) == {KEY: 44}
    stored.fetched({KEY: first, ("t", 1): 7})
    stored.fetched({KEY: first + 1})
    assert not stored.awaited
    assert stored.among({KEY: first}) == {KEY: 44}
    assert stored.among({KEY: first + 1}) == {KEY: first + 1}


def test_a_later_seek_waits_for_a_record_again() -> None:
    """What was fetched before it says nothing about it."""
    stored = StoredOffsets()
    stored.start(KEY, 10)
    stored.fetched({KEY: 10})
    stored.start(KEY, 30, 44)
    assert stored.awaited.keys() == {KEY}
    assert stored.among({KEY: 30}) == {KEY: 44}
    stored.forget([KEY])
    assert stored.among({KEY: 30}) == {KEY: 30}
