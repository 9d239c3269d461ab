"""Fields that the schema does not know never disappear silently: each policy defines their handling."""

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from spark_sink.errors import FetchError, OptionError
from spark_sink.formats import Decoded, JsonDecoder, decode_batch, decoder, infer_columns
from spark_sink.formats.declared_or_inferred_columns import given_columns
from spark_sink.formats.decoder import RESERVED
from spark_sink.formats.unknown_policy import COLUMN, Policy
from spark_sink.options.source_options import SourceOptions
from tests.unit.spark_sink.formats.examples import decoded, raw

COLUMNS = given_columns('{"id": "int", "place": {"x": "int"}, "items": [{"n": "int"}]}')
VALUES = [
    b'{"id": 1, "place": {"x": 2}}',
    b'{"id": 2, "coupon": 1.10, "place": {"x": 2, "y": null}, "items": [{"n": 1}, {"n": 2, "q": 9' + b"9" * 19 + b"}]}",
    b'{"id": "bad", "coupon": 5}',
]
REST = '{"coupon":1.10,"place":{"y":null},"items":[null,{"q":99999999999999999999}]}'


@pytest.fixture(autouse=True)
def _no_field_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process."""
    monkeypatch.setattr(decoder, "_logged", {})


@pytest.mark.parametrize("policy", ["rescue", "evolve"])
def test_rescued_fields_keep_their_places_and_every_digit(policy: Policy) -> None:
    """At every depth; a bad record is kept whole in the quarantine, so nothing of it is rescued."""
    rows = decoded(list(VALUES), JsonDecoder(COLUMNS, policy))
    assert [(row[COLUMN], error) for row, error in rows] == [(None, None), (REST, None), (None, "WrongType")]
    assert rows[1][0]["place"] == {"x": 2}


def test_quarantined_fields_take_their_record_with_them() -> None:
    """The reason names them, and no column of the record is left."""
    decoder = JsonDecoder(COLUMNS, "quarantine")
    assert decoder.columns == COLUMNS
    assert [error for _, error in decoded(list(VALUES), decoder)] == [None, "UnknownField", "WrongType"]
    reason = decode_batch(raw(VALUES), decoder).column("_quarantine")[1].as_py()
    assert reason["error_text"] == f"the schema does not know {REST}"


def test_ignored_fields_leave_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    """Where a schema is narrow on purpose."""
    rows = decoded(list(VALUES), JsonDecoder(COLUMNS, "ignore"))
    assert [error for _, error in rows] == [None, None, "WrongType"]
    assert rows[1][0] == {"id": 2, "place": {"x": 2}, "items": [{"n": 1}, {"n": 2}]}
    assert not caplog.records


@pytest.mark.parametrize("policy", ["rescue", "evolve", "quarantine"])
def test_each_field_of_each_topic_is_logged_once_with_its_count(
    policy: Policy, caplog: pytest.LogCaptureFixture
) -> None:
    """A new field is news once; its count says whether it is one record or all."""
    batch = raw([b'{"id": 1, "coupon": 5, "place": {"y": 1}}', b'{"id": 1, "coupon": 6}'])
    for _ in range(3):
        decode_batch(batch, JsonDecoder(COLUMNS, policy))
    decode_batch(batch.set_column(0, "topic", pa.array(["u", "u"])).slice(1), JsonDecoder(COLUMNS, policy))
    logged = sorted(record.getMessage().partition(";")[0] for record in caplog.records)
    assert logged == [
        "topic 't': field 'coupon' is not in the schema (2 records of this batch have it)",
        "topic 't': field 'place.y' is not in the schema (1 records of this batch have it)",
        "topic 'u': field 'coupon' is not in the schema (1 records of this batch have it)",
    ]


def test_objects_used_as_maps_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Names that are identifiers have no end."""
    values = [json.dumps({f"user-{number}": 1}).encode() for number in range(500)]
    decode_batch(raw(values), JsonDecoder(COLUMNS, "rescue"))
    assert len(caplog.records) == 101
    assert "more than 100 fields" in caplog.records[-1].getMessage()


def test_members_with_the_name_of_a_coordinate_are_rescued_from_inferred_columns() -> None:
    """`key` and `timestamp` are common names of members, and one of them would otherwise refuse the topic."""
    value = b'{"id": 1, "timestamp": "now", "key": 5}'
    found = JsonDecoder(infer_columns([value], RESERVED), "rescue", texts=True)
    assert decoded([value], found) == [({"id": 1, COLUMN: '{"timestamp":"now","key":5}'}, None)]


def test_a_column_may_not_have_the_name_of_the_rescued_fields() -> None:
    """The two could not be distinguished."""
    with pytest.raises(OptionError, match=r"'_rescued'.*unknownFields=ignore"):
        JsonDecoder(given_columns('{"_rescued": "string"}'), "rescue")


def test_the_option_rescues_where_nothing_is_said() -> None:
    """Silently lost fields are noticed too late."""
    given = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g", "subscribe": "a"}
    assert SourceOptions.parse(given).value.unknown == "rescue"
    assert SourceOptions.parse({**given, "unknownFields": "Evolve"}).value.unknown == "evolve"
    with pytest.raises(OptionError, match=r"unknownFields.*'drop'"):
        SourceOptions.parse({**given, "unknownFields": "drop"})


class Brittle(JsonDecoder):
    """A decoder with a fault."""

    def __init__(self, error: Exception) -> None:
        super().__init__(COLUMNS, "rescue")
        self._error = error

    def quick(self, values: pa.Array) -> None:
        """Leave every value to `decode`."""

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Fail at one value."""
        if b"{}" in values:
            raise self._error
        return super().decode(values)


def test_a_fault_of_a_decoder_costs_one_record_and_not_the_batch() -> None:
    """The last resort: a value that no test thought of is in the quarantine, and its neighbours are in the table."""
    rows = decoded([VALUES[1], b"{}", VALUES[1]], Brittle(KeyError("x")))
    assert [error for _, error in rows] == [None, "NotDecodable", None]
    assert rows[2][0][COLUMN] == REST


@pytest.mark.parametrize("error", [FetchError("down"), MemoryError(), OSError()], ids=lambda one: type(one).__name__)
def test_what_may_pass_is_no_fault_of_the_record(error: Exception) -> None:
    """The batch is tried again: a good record must not be quarantined because a registry was down."""
    with pytest.raises(type(error)):
        decoded([b"{}"], Brittle(error))
