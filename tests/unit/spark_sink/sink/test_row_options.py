"""Options of values and of tables for fleets and claims: invalid ones are refused before any connection."""

import pytest

from spark_sink.errors import SparkSinkError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.sink.row_options import RowOptions

SCHEMA = '{"id": "bigint"}'


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"valueFormat": "jsn"}, "jsn"),
        ({"valueFormat": "json"}, "valueSchema"),
        ({"valueFormat": "json", "valueSchema": "id bigint"}, "valueSchema"),
        ({"valueFormat": "json", "valueSchema": "table"}, "read from the table"),
        ({"valueFormat": "json", "valueSchema": '{"offset": "bigint"}'}, "'offset'"),
        ({"valueFormat": "json", "valueSchema": SCHEMA, "unknownFields": "evolve"}, "evolve"),
        ({"valueFormat": "json", "valueSchema": SCHEMA, "unknownFields": "keep"}, "unknownFields"),
        ({"valueFormat": "json", "valueSchema": SCHEMA, "valueNull": "drop"}, "valueNull"),
        ({"valueFormat": "json", "valueSchema": SCHEMA, "partitionBy": "day"}, "'day'"),
        ({"valueFormat": "avro"}, "schema.registry.url"),
        ({"valueSchema": SCHEMA}, "'valueSchema' has no effect"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_an_invalid_option_is_named(given: dict[str, str], named: str) -> None:
    """One sentence, and nothing was written."""
    with pytest.raises(SparkSinkError, match=named) as error:
        RowOptions.parse(given, {}, table="t")
    assert "\n" not in str(error.value)


def test_without_options_rows_are_raw_records() -> None:
    """Tables of earlier versions continue as they are."""
    rows = RowOptions.parse({"valueFormat": "raw", "mergeSchema": "False"}, {}, table="lake/{topic}")
    assert not rows.decodes
    assert rows.columns == arrow_schema(headers=False)
    assert not rows.table.merge_schema


@pytest.mark.parametrize(
    ("table", "topics", "subject"),
    [("lake/{topic}", (), "x-value"), ("lake/t", ("one",), "one-value"), ("lake/{topic}", ("one",), "x-value")],
)
def test_the_subject_is_that_of_the_topic(table: str, topics: tuple[str, ...], subject: str) -> None:
    """Tables of their own have schemas of their own; one table of several topics needs one subject."""
    rows = RowOptions.parse({"valueFormat": "avro"}, {"url": "http://r"}, table=table, topics=topics)
    assert rows.value_of("x").subject == subject
