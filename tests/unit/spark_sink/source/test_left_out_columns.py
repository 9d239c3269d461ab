"""`includeKey=false` and `includeValue=false` leave columns out of rows and files, and out of nothing else."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from spark_sink import KafkaGroupSource
from spark_sink.errors import OptionError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.options.source_options import SourceOptions
from spark_sink.ranges.batch_offset import Offset
from spark_sink.sink.delta_sink import DirectWriter
from spark_sink.sink.direct_landing import table_schema
from spark_sink.sink.sink_options import SinkOptions
from spark_sink.source.batch_reader import KafkaBatchReader
from spark_sink.source.source_decoder import make_decoder
from spark_sink.source.stream_reader import KafkaGroupReader, TaskRanges
from tests.unit.spark_sink.source.test_table_columns import Log

BOTH = {"kafka.bootstrap.servers": "b", "kafka.group.id": "g"}
JSON = {"valueFormat": "json", "valueSchema": '{"id": "bigint"}'}
LEFT_OUT = [
    pytest.param({}, {"includeKey": "false"}, {"key"}, id="key"),
    pytest.param({}, {"includevalue": "FALSE"}, {"value"}, id="value"),
    pytest.param({}, {"includeKey": "false", "includeValue": "false"}, {"key", "value"}, id="both"),
    pytest.param(JSON, {"includeKey": "false"}, {"key"}, id="key, decoded"),
    pytest.param({**JSON, "valueSchema": "table"}, {"includeKey": "false"}, {"key"}, id="key, columns of the table"),
]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """A topic with one good value and one that is no JSON."""
    log = Log()
    log.add("t", 0, b'{"id": 1}', b"{")
    monkeypatch.setattr("spark_sink.fetch.range_reader.fetch", log.fetch)
    monkeypatch.setattr("spark_sink.source.source_decoder._sample", lambda _: iter([b'{"id": 1}']))
    return log


def columns(options: dict[str, str]) -> StructType:
    """The columns that the source declares; those of the raw format are a text, which only Spark parses."""
    found = KafkaGroupSource(options).schema()
    return found if isinstance(found, StructType) else from_arrow_schema(arrow_schema(headers=False))


@pytest.mark.parametrize(("value", "option", "left_out"), LEFT_OUT[:-1])
def test_rows_have_the_declared_columns(
    log: Log, value: dict[str, str], option: dict[str, str], left_out: set[str]
) -> None:
    """Of a stream and of a batch read; pyspark refuses rows with others."""
    given = {**BOTH, "subscribe": "t", **value, **option}
    all_columns = columns({name: text for name, text in given.items() if name not in option})
    declared = columns(given)
    assert [one for one in all_columns.names if one not in left_out] == declared.names
    options = SourceOptions.parse(given)
    decoder = make_decoder(options, to_arrow_schema(declared, timezone="UTC")) if value else None
    task = TaskRanges([log.add("t", 0, b'{"id": 3}')], {})
    for reader in (KafkaGroupReader(options, decoder), KafkaBatchReader(options, decoder)):
        for batch in reader.read(task):
            assert batch.schema.names == declared.names


@pytest.mark.parametrize(("value", "option", "left_out"), LEFT_OUT)
def test_files_of_tasks_lack_the_column_and_bad_rows_keep_it(
    log: Log, tmp_path: Path, value: dict[str, str], option: dict[str, str], left_out: set[str]
) -> None:
    """A replay from the quarantine needs the key and the value."""
    table = str(tmp_path / "table")
    given = {**BOTH, "subscribe": "t", "positions": table, "sinkLanding": "direct", **value, **option}
    sink = {**BOTH, "path": table, "checkpointLocation": str(tmp_path / "checkpoint"), **option}
    if value:
        sink["columns"] = columns(given).json()
    source = KafkaGroupSource({**given, "landing": json.dumps(sink)})
    reader = source.streamReader(source.schema())  # type: ignore[arg-type] # as Spark calls it
    writer = DirectWriter(SinkOptions.parse(sink), table_schema(sink))
    offset = Offset.of([log.add("t", 0, b'{"id": 4}', b"[")])
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(offset.value())}")
    tasks = reader.partitions(Offset().value(), offset.value())
    writer.commit([writer.write(reader.read(one)) for one in tasks], 0)
    rows = DeltaTable(table).to_pyarrow_table()
    assert not left_out & set(rows.schema.names)
    assert rows.num_rows == (1 if value else 2)
    if value:
        assert rows.column("id").to_pylist() == [4]
        bad = DeltaTable(f"{table}_quarantine").to_pyarrow_table()
        assert bad.column("value").to_pylist() == [b"["]
        assert "key" in bad.schema.names


def test_a_decoded_value_has_no_column_to_leave_out() -> None:
    """Its columns are those of the schema."""
    with pytest.raises(OptionError, match=r"'includeValue' is for valueFormat=raw: .*valueSchema"):
        SourceOptions.parse({**BOTH, "subscribe": "t", **JSON, "includeValue": "false"})
