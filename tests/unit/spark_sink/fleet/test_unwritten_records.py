"""Records of fleets as Arrow columns."""

import pytest

from spark_sink.fetch.raw_columns import LAST_MS
from spark_sink.fleet.unwritten_records import RecordBuffer
from tests.unit.spark_sink.fleet.scripted import Record


@pytest.mark.parametrize(
    ("milliseconds", "microseconds"),
    [
        (0, 0),
        (1_700_000_000_000_000, 1_700_000_000_000_000_000),
        (LAST_MS, LAST_MS * 1000),
        (LAST_MS + 1, None),
        (1_700_000_000_000_000_000, None),
        (-1, None),
    ],
)
def test_a_time_that_microseconds_cannot_express_is_null(milliseconds: int, microseconds: int | None) -> None:
    """A producer that gives nanoseconds as milliseconds must not stop its topic."""

    class Dated(Record):
        def timestamp(self) -> tuple[int, int]:
            return 1, milliseconds

    rows = RecordBuffer()
    rows.add("x", Record("x", 0))
    rows.add("x", Dated("x", 1))
    found = rows.rows({"x"}).column("timestamp")
    assert found[0].value == 1_700_000_000_000_000
    assert found[1].value == microseconds
