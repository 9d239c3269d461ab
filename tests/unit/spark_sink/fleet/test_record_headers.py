"""Headers of records on their way into the tables of fleets and claims: landed where asked for, else reported."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from assignors.fleet import FleetTopic
from spark_sink.claimed.header_samples import SampledFetch
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.fleet.table_writer import TableWriter
from spark_sink.fleet.unwritten_records import RecordBuffer
from spark_sink.options.fetch_settings import FetchSettings
from spark_sink.ranges.batch_offset import Range
from spark_sink.sink.row_options import RowOptions
from tests.unit.spark_sink.fleet.scripted import Record, gains, read, returns

PAIRS = [("trace", b"\x00\xff"), ("trace", None), ("empty", b"")]
LANDED = [{"key": key, "value": value} for key, value in PAIRS]


class Unreadable(Record):
    """A record with a header whose name is not UTF-8, with the client's error for it."""

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Refused, as confluent-kafka 2.16 does: the decoding's error is the cause of another one."""
        try:
            b"\xff".decode()
        except UnicodeDecodeError as error:
            raise SystemError("returned a result with an exception set") from error
        return None


def write(table: Path, begin: int, records: Sequence[Record], *, include_headers: bool) -> None:
    """Commit some records of topic x."""
    writer = TableWriter(str(table), "g", "a", rows=RowOptions(headers=include_headers))
    writer.label([FleetTopic("c", "1", "x", "s")])
    rows = RecordBuffer(include_headers=include_headers)
    for record in records:
        rows.add("x", record)
    writer.commit(writer.land(rows, {"x"}), [Range("x", 0, begin, begin + len(records))])


def headers(table: Path) -> list[list[dict[str, object]] | None]:
    """The column of a table, in the order of offsets."""
    found: list[list[dict[str, object]] | None] = (
        DeltaTable(str(table)).to_pyarrow_table().sort_by("offset").column("headers").to_pylist()
    )
    return found


def test_headers_are_landed_as_sparks_raw_format_has_them(tmp_path: Path) -> None:
    """Doubled names, null and empty values and records without headers: all as they were produced."""
    write(tmp_path / "t", 0, [Record("x", 0, PAIRS), Record("x", 1), Record("x", 2, [])], include_headers=True)
    assert headers(tmp_path / "t") == [LANDED, None, []]
    want = arrow_schema(headers=True).field("headers").type
    assert pa.schema(DeltaTable(str(tmp_path / "t")).schema().to_arrow()).field("headers").type == want


@pytest.mark.parametrize("first", [False, True], ids=["table without the column", "table with the column"])
def test_agents_with_and_without_headers_share_a_table(tmp_path: Path, first: bool) -> None:  # noqa: FBT001 - a case
    """The setting is changed by a rolling restart: nothing is refused on either side, and old rows are null."""
    write(tmp_path / "t", 0, [Record("x", 0, PAIRS)], include_headers=first)
    write(tmp_path / "t", 1, [Record("x", 1, PAIRS)], include_headers=not first)
    write(tmp_path / "t", 2, [Record("x", 2, PAIRS)], include_headers=first)
    assert headers(tmp_path / "t") == ([LANDED, None, LANDED] if first else [None, LANDED, None])


def test_a_header_name_that_is_not_utf8_stops_no_topic(tmp_path: Path) -> None:
    """The client gives no header of such a record: the row comes with the reason in their place."""
    write(tmp_path / "t", 0, [Unreadable("x", 0)], include_headers=True)
    (found,) = headers(tmp_path / "t")
    assert found is not None
    assert found[0]["key"] == "azimuth.unreadable_headers"


def test_headers_that_are_not_landed_are_reported_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Silently dropped headers were missed only later, when retention had deleted the records."""
    join = gains("x", "y", records=[Record("x", 0, PAIRS), Record("y", 0), Record("x", 1, PAIRS)])

    more = returns(Record("x", 2, PAIRS), Record("y", 1))

    with caplog.at_level(logging.WARNING):
        read(monkeypatch, tmp_path / "t", 5, join, more)
    (line,) = [one for one in caplog.messages if "headers" in one]
    assert "s/x" in line
    assert "include_headers = true" in line


def test_claims_report_headers_that_are_not_landed_from_a_sample(caplog: pytest.LogCaptureFixture) -> None:
    """Headers cost a call a record: they are read from time to time, and every batch comes without them."""
    asked: list[bool] = []
    now = [0.0]

    def fetch(ranges: Sequence[Range], settings: FetchSettings) -> Iterator[pa.RecordBatch]:
        asked.append(settings.headers)
        rows = [{"topic": one.topic, "partition": 0, "offset": one.begin} for one in ranges]
        if settings.headers and now[0]:
            rows[0]["headers"] = LANDED
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(headers=settings.headers))

    reads = SampledFetch(FetchSettings(kafka={}), fetch, lambda: now[0])
    for moment in (0.0, 1.0, 601.0, 602.0, 1300.0):
        now[0] = moment
        (batch,) = reads([Range("x", 0, 0, 1), Range("y", 0, 0, 1)])
        assert batch.schema == arrow_schema(headers=False)
    assert asked == [True, False, True, False, True]
    assert len([one for one in caplog.messages if "x: its records have headers" in one]) == 1
