"""Columns that a program gives to the source by `schema(...)`; Spark also gives those that the source declares."""

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from spark_sink import KafkaGroupSource
from spark_sink.errors import OptionError

BOTH = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.group.id": "g", "subscribe": "t"}
BATCH = {name: value for name, value in BOTH.items() if name != "kafka.group.id"}
VALUES = [
    {},
    {"includeHeaders": "true", "includeTimestampType": "true"},
    {"includeKey": "false"},
    {"valueFormat": "json", "valueSchema": '{"id": "bigint"}'},
]
TEXT = StructField("value", StringType())


@pytest.mark.parametrize("value", VALUES)
def test_only_the_declared_columns_are_taken(value: dict[str, str]) -> None:
    """With others each task failed, in words about Arrow."""
    for make in (
        lambda given: KafkaGroupSource({**BOTH, **value}).streamReader(given),
        lambda given: KafkaGroupSource({**BATCH, **value}).reader(given),
    ):
        declared = KafkaGroupSource({**BATCH, **value}).schema()
        assert isinstance(declared, StructType)
        make(declared)
        fixed = [one for one in declared if one.name != "id"]
        for other in (fixed[1:], [TEXT], [*fixed[:-1], StructField(fixed[-1].name, StringType())]):
            with pytest.raises(OptionError, match=r"schema\(\.\.\.\) cannot be set: the columns are topic string, "):
                make(StructType(other))


def test_raw_records_have_no_other_columns() -> None:
    """Those of decoded values may be any: a column more, or another order, would be read from no column."""
    declared = KafkaGroupSource(BATCH).schema()
    assert isinstance(declared, StructType)
    for other in ([*declared, TEXT], [*declared][::-1]):
        with pytest.raises(OptionError, match="cannot be set"):
            KafkaGroupSource(BATCH).reader(StructType(other))
