"""The first commit of a Delta table makes the same checks as all later ones."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from spark_sink.errors import ConflictError, SchemaError, TableError
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.parquet_landing import Landing, Layout, normal_schema
from spark_sink.lake.table_contract import KEYS, Change
from spark_sink.lake.table_settings import TableSettings
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.commit_by_compare_and_swap import Batch, Outcome, commit

NUMBER = pa.field("x", pa.int64())


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Outcome]:
    """Write one row as the first batch of a table; a retry is an error."""

    def first(column: pa.Field = NUMBER, **properties: str) -> Outcome:
        schema = pa.schema([*KEYS.items(), column])
        landing = Landing(filesystem(str(tmp_path), make=True), schema)
        values = pa.nulls(1, column.type) if column.nullable else pa.array([1], column.type)
        columns = [pa.array(["t"]), pa.array([0], pa.int32()), pa.array([0]), values]
        landing.write(pa.record_batch(columns, schema=schema))
        batch = Batch(offset=Offset.of([Range("t", 0, 0, 1)]), files=landing.close(), schema=schema)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        table = DeltaLakeTable(str(tmp_path), "g", settings=TableSettings(properties=named))
        return commit(table, batch, sleep=lambda _: pytest.fail("it is tried again"))

    return first


def _rows(path: Path) -> int:
    try:
        return sum(pa.table(DeltaTable(str(path)).get_add_actions())["num_records"].to_pylist())
    except TableNotFoundError:
        return 0


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.field("x", pa.int64(), nullable=False), "has the rule NOT NULL"),
        (pa.field("x", pa.list_(pa.field("element", pa.int32(), nullable=False))), "has the rule NOT NULL"),
        (pa.field("x", pa.int64(), metadata={"delta.generationExpression": "1"}), "has the rule delta.generation"),
        (pa.field("x", pa.uint64()), "is int64 in the table and uint64 in the query"),
        (pa.field("x", pa.timestamp("ns")), r"is timestamp\[us\] in the table and timestamp\[ns\] in the query"),
    ],
    ids=["not null", "not null inside", "generated", "unsigned", "nanoseconds"],
)
def test_columns_that_a_later_batch_may_not_have_are_refused_in_the_first(
    tmp_path: Path, write: Callable[..., Outcome], column: pa.Field, sentence: str
) -> None:
    """Else the table has rows that readers cannot read, and takes no second batch."""
    with pytest.raises(SchemaError, match=sentence):
        write(column)
    assert _rows(tmp_path) == 0


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_with_mapped_columns_gets_no_rows(tmp_path: Path, write: Callable[..., Outcome], mode: str) -> None:
    """Its readers look for columns under names that the sink's files do not have."""
    with pytest.raises(SchemaError, match=f"has the property delta.columnMapping.mode={mode}"):
        write(delta_columnMapping_mode=mode)
    assert _rows(tmp_path) == 0


@pytest.mark.parametrize(
    ("column", "properties", "sentence"),
    [
        (NUMBER, {"delta_typo": "1"}, "cannot be created: .*delta.typo"),
        (NUMBER, {"delta_minWriterVersion": "99"}, "cannot be created: .*delta.minWriterVersion"),
        (pa.field("Topic", pa.int64()), {}, "cannot be created: .*Topic"),
    ],
    ids=["no such property", "no such value", "names that differ in case"],
)
def test_what_cannot_be_created_is_not_tried_again(
    write: Callable[..., Outcome], column: pa.Field, properties: dict[str, str], sentence: str
) -> None:
    """A retry waits for seconds, and does not help."""
    with pytest.raises(TableError, match=sentence):
        write(column, **properties)


@pytest.mark.parametrize("kind", [*KEYS.values(), pa.timestamp("us", "UTC"), pa.decimal128(38, 9), pa.list_(pa.int8())])
def test_the_first_batch_of_other_tables_takes_one_commit(
    tmp_path: Path, write: Callable[..., Outcome], kind: pa.DataType
) -> None:
    """Columns of the kinds that decoders return."""
    column = normal_schema(pa.schema([*KEYS.items(), ("x", kind)])).field("x")
    assert write(column).rows == _rows(tmp_path) == 1
    assert DeltaTable(str(tmp_path)).version() == 0


def test_properties_of_a_new_table_are_kept(tmp_path: Path, write: Callable[..., Outcome]) -> None:
    """Also beside the rows of its first batch."""
    assert write(delta_enableChangeDataFeed="true").rows == _rows(tmp_path) == 1
    assert DeltaTable(str(tmp_path)).metadata().configuration["delta.enableChangeDataFeed"] == "true"


@pytest.mark.parametrize("by", ["nope", "Topic", "value"])
@pytest.mark.parametrize("first", [DeltaLakeTable.create, DeltaLakeTable.begin])
def test_a_table_that_cannot_be_partitioned_is_not_created_without_rows(
    tmp_path: Path, first: Callable[[DeltaLakeTable, pa.Schema], object], by: str
) -> None:
    """Rows are checked when they are written, and the first batch may have none."""
    table = DeltaLakeTable(str(tmp_path), "g", settings=TableSettings(layout=Layout(partition_columns=(by,))))
    with pytest.raises(SchemaError, match="partition column"):
        first(table, pa.schema([*KEYS.items(), ("value", pa.binary())]))
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize("name", ["00000000000000000000.crc", "00000000000000000004.checkpoint.parquet"])
def test_a_log_without_a_commit_is_not_another_writer(tmp_path: Path, name: str) -> None:
    """The writer would look again a hundred times, and report that others were faster."""
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / name).touch()
    table = DeltaLakeTable(str(tmp_path), "g")
    schema = pa.schema([*KEYS.items()])
    change = Change(files=(), positions={}, beginnings={}, schema=schema)
    assert table.refresh() is None
    with pytest.raises(TableError, match=r"cannot be created: .*neither a commit nor a checkpoint") as caught:
        table.swap(table.begin(schema), change)
    assert not isinstance(caught.value, ConflictError)


def test_a_table_that_the_store_lists_late_is_no_error_for_a_second_maker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents start at the same time, and the listing of the slower one has no table yet."""
    schema = pa.schema([*KEYS.items()])
    DeltaLakeTable(str(tmp_path), "g").create(schema)
    monkeypatch.setattr(DeltaTable, "is_deltatable", lambda *_: False)
    slower = DeltaLakeTable(str(tmp_path), "g")
    slower.create(schema)
    assert slower.refresh() is not None


@pytest.mark.parametrize("properties", [{}, {"delta.appendOnly": "true"}])
def test_a_writer_looks_again_at_a_table_that_the_store_lists_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    """It is not reported as one that someone else deletes."""
    schema, settings = pa.schema([*KEYS.items()]), TableSettings(properties=properties)
    DeltaLakeTable(str(tmp_path), "g", settings=settings).create(schema)
    table = DeltaLakeTable(str(tmp_path), "g", settings=settings)
    with monkeypatch.context() as late:

        def unlisted(_: object) -> None:
            raise TableNotFoundError

        late.setattr(DeltaLakeTable, "_updated", unlisted)
        assert table.refresh() is None
        begun = table.begin(schema)
        with pytest.raises(ConflictError):
            table.swap(begun, Change(files=(), positions={}, beginnings={}, schema=schema))
    assert table.refresh() is not None


def test_a_store_that_refuses_every_request_is_reported_by_its_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look for the commit of another writer is refused, too, and says less."""

    def refuse(what: str) -> Callable[..., None]:
        def refused(*_: object) -> None:
            raise OSError(what)

        return refused

    table, schema = DeltaLakeTable(str(tmp_path), "g"), pa.schema([*KEYS.items()])
    assert table.refresh() is None
    monkeypatch.setattr("spark_sink.lake.delta_table.create_with", refuse("access denied"))
    monkeypatch.setattr("spark_sink.lake.delta_log_reader.read_commit", refuse("no answer"))
    with pytest.raises(TableError, match="cannot be created: access denied"):
        table.swap(table.begin(schema), Change(files=(), positions={}, beginnings={}, schema=schema))
