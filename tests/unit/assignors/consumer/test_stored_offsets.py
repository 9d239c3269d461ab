"""Which position is one after a delivered record."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

from assignors.consumer.stored_offsets import StoredOffsets

KEY = ("t", 0)


@pytest.mark.parametrize(
    ("sought", "first"), [(48, 48), (OFFSET_END, 50), (OFFSET_BEGINNING, 20), (-2005, 45), (-2090, 20)]
)
def test_a_record_that_was_fetched_and_not_delivered_stores_nothing(sought: int, first: int) -> None:
    """The position is then that of the seek, before this record; -2005 is five records before the end."""
    stored = StoredOffsets(lambda _: (20, 50), lambda _: first + 10)  # fetched ahead
    stored.start(KEY, sought, 44)
    assert stored.among({KEY: first}) == {KEY: 44}
    assert stored.among({KEY: first + 1}) == {KEY: first + 1}
