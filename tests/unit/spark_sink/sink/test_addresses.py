"""A file that was written goes into a table, or the batch is refused: however an address is spelled."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink import positions
from spark_sink.errors import OptionError, SparkSinkError, TableError
from spark_sink.fetch.raw_columns import arrow_schema
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.table_addresses import table_uri
from spark_sink.ranges.batch_offset import Offset, Range
from spark_sink.sink.delta_sink import DirectWriter, Landed, SinkWriter
from spark_sink.sink.direct_landing import land, parse, refuse_unread
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.sink_options import SinkOptions

SCHEMA = arrow_schema(headers=False)


def _rows(topic: str) -> pa.RecordBatch:
    rows = [{"topic": topic, "partition": 0, "offset": one, "value": b"v"} for one in range(3)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _options(path: str) -> dict[str, str]:
    return {"path": path, "kafka.group.id": "g", "checkpointLocation": "c", "compactEvery": "0"}


def _land_and_commit(landed: str, committed: str, topic: str = "t", *, there: Path, here: Path) -> None:
    """Tasks land in one working directory, with one address; the driver commits in another, with another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(there)
        ranges = [Range("t", 0, 0, 3)]
        (text,) = land([_rows(topic)], _options(landed), SCHEMA, "run", ranges).column(0).to_pylist()
        patch.chdir(here)
        tables = Tables(SinkOptions.parse(_options(committed)))
        tables.commit(Offset.of(ranges), parse(text, SCHEMA), SCHEMA, 0)


SPELLINGS: dict[str, Callable[[Path], str]] = {
    "plain": lambda root: f"{root}/lake/t",
    "slash at the end": lambda root: f"{root}/lake/t/",
    "two slashes": lambda root: f"{root}//lake//t",
    "dots": lambda root: f"{root}/lake/../lake/./t",
    "file": lambda root: f"file://{root}/lake/t",
    "file without slashes": lambda root: f"file:{root}/lake/t",
    "FILE": lambda root: f"FILE://{root}/lake/t",
    "link": lambda root: f"{root}/link/t",
    "relative": lambda _: "lake/t",
    "placeholder": lambda root: f"{root}/lake/{{topic}}",
    "link and placeholder": lambda root: f"{root}/link/{{topic}}",
}


@pytest.mark.parametrize("committed", SPELLINGS)
@pytest.mark.parametrize("landed", SPELLINGS)
def test_spellings_of_one_place_are_one_table(tmp_path: Path, landed: str, committed: str) -> None:
    """A table at one place takes the files that lie there, whatever the two sides call it."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    _land_and_commit(SPELLINGS[landed](tmp_path), SPELLINGS[committed](tmp_path), there=tmp_path, here=tmp_path)
    report = verify(f"{tmp_path}/lake/t")
    assert (report.rows, report.ok) == (3, True)


@pytest.mark.parametrize(
    ("landed", "committed", "topic"),
    [
        ("lake", "lake", "t"),  # relative, and another working directory
        ("{root}/one", "{root}/two", "t"),  # landing names another table than the sink
        ("{root}/raw_{topic}", "{root}/raw_{topic}", "T"),  # the query rewrites the topic
        ("{root}/raw_{topic}", "{root}/raw_{topic}", "t_bad"),
        ("{root}/one", "{root}/one_{topic}", "t"),
    ],
)
def test_files_that_no_table_takes_are_refused(tmp_path: Path, landed: str, committed: str, topic: str) -> None:
    """The position must not move past rows that are in no table."""
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    first, second = (one.replace("{root}", str(tmp_path)) for one in (landed, committed))
    with pytest.raises(TableError, match=r"the tasks wrote 3 rows of .* here, but the batch goes to .*; nothing was"):
        _land_and_commit(first, second, topic, there=tmp_path / "there", here=tmp_path / "here")
    for folder in (tmp_path, tmp_path / "here"):
        for table in folder.iterdir():
            assert positions(str(table), "g") == {}


def test_a_task_that_does_not_say_what_it_wrote_fails_the_batch(tmp_path: Path) -> None:
    """Its rows would be missing below the new position."""
    offset = Offset.of([Range("t", 0, 0, 3)])
    (tmp_path / "c/offsets").mkdir(parents=True)
    (tmp_path / "c/offsets/0").write_text(f"v1\n{{}}\n{offset.json()}\n")
    options = SinkOptions.parse({**_options(str(tmp_path / "t")), "checkpointLocation": str(tmp_path / "c")})
    with pytest.raises(TableError, match="1 of 2 tasks do not say which files"):
        SinkWriter(options, SCHEMA).commit([Landed({}), None], 0)
    with pytest.raises(TableError, match=r"t/0: the tasks landed offsets up to 0 of the batch's range \[0, 3\)"):
        DirectWriter(options, SCHEMA).commit([Landed({})], 0)
    assert positions(str(tmp_path / "t"), "g") == {}


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5))
def test_ranges_of_tasks_cover_the_batch_or_are_refused(end: int, pieces: list[tuple[int, int]]) -> None:
    """Whatever was lost between the tasks and the commit."""
    read = [Range("t", 0, min(one), max(one)) for one in pieces]
    covered = set().union(*(range(one.begin, one.end) for one in read))
    offset = Offset.of([Range("t", 0, 0, end)])
    if set(range(end)) <= covered:
        refuse_unread(offset, read)
    else:
        with pytest.raises(TableError, match="without a filter"):
            refuse_unread(offset, read)


@pytest.mark.parametrize(
    ("spelled", "one"),
    [
        ("s3a://lake/t/", "s3://lake/t"),
        ("S3://lake/t", "s3://lake/t"),
        ("s3n://lake/t//", "s3://lake/t"),
        ("abfs://box@account/t", "abfss://box@account/t"),
        ("gs://lake/t", "gs://lake/t"),
        ("HDFS://namenode:8020/lake/t/", "hdfs://namenode:8020/lake/t"),
    ],
)
def test_schemes_of_one_store_are_one(spelled: str, one: str) -> None:
    """Spark's users write `s3a`, delta-rs' users `s3`."""
    assert table_uri(spelled) == one


@pytest.fixture
def stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working directory, on Linux, in which nothing is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    yield
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("dbfs:/lake/t", "DBFS cannot create a file only if it is absent.*s3://"),
        ("dbfs://lake/t", "DBFS cannot"),
        ("DBFS:/lake/t", "DBFS cannot"),
        ("/Volumes/main/raw/lake/t", "Unity Catalog volume cannot.*DESCRIBE VOLUME"),
        ("file:///Volumes/main/raw/lake/t", "Unity Catalog volume cannot"),
        ("/dbfs/lake/t", "DBFS cannot"),
        ("hdfs:/lake/t", "begins with hdfs://"),
        ("s3:/lake/t", "begins with s3://"),
        ("abfss:/lake/t", "begins with abfss://"),
    ],
)
@pytest.mark.usefixtures("stays_empty")
def test_other_file_systems_are_refused_and_never_a_local_folder(address: str, words: str) -> None:
    """Rows in a local folder named `dbfs:` would be lost with the machine."""
    with pytest.raises(OptionError, match=words):
        SinkOptions.parse(_options(address))
    with pytest.raises(OptionError, match=words):
        positions(address, "g")


@pytest.mark.parametrize(
    ("warehouse", "words"),
    [
        ("dbfs:/lake", "DBFS cannot"),
        ("/dbfs/lake", "DBFS cannot"),
        ("/Volumes/main/raw/lake", "Unity Catalog volume cannot.*DESCRIBE VOLUME"),
        ("file:///Volumes/main/raw/lake", "Unity Catalog volume cannot"),
        ("s3:/lake", "begins with s3://"),
        ("hdfs:/lake", "begins with hdfs://"),
        ("hdfs://namenode/lake", "give catalog.warehouse=FOLDER for a local catalog, or catalog.type"),
    ],
)
@pytest.mark.usefixtures("stays_empty")
def test_a_warehouse_of_another_file_system_is_refused(warehouse: str, words: str) -> None:
    """The catalog would be an SQLite database in a folder of that name."""
    with pytest.raises(OptionError, match=words):
        open_catalog("lake", {"catalog.warehouse": warehouse})


@pytest.mark.usefixtures("stays_empty")
def test_hdfs_is_understood_and_never_a_local_folder() -> None:
    """delta-rs speaks to the namenode itself; here there is none, which is one sentence."""
    address = "hdfs://127.0.0.1:1/lake/t"
    assert SinkOptions.parse(_options(address)).routes.default == address
    with pytest.raises(TableError, match=r"^hdfs://127\.0\.0\.1:1/lake/t: .*Connection refused"):
        positions(address, "g")


@pytest.mark.parametrize("checkpoint", ["dbfs:/c", "s3:/c"])
def test_a_checkpoint_that_the_commits_cannot_read_is_refused_at_the_start(checkpoint: str) -> None:
    """Otherwise the first batch fails after its files are written."""
    with pytest.raises(OptionError, match=checkpoint):
        SinkOptions.parse({**_options("t"), "checkpointLocation": checkpoint})


@given(st.text(max_size=20))
def test_an_address_of_any_text_is_a_spelling_or_refused(text: str) -> None:
    """And what is made of it stays what it is."""
    try:
        found = table_uri(text)
    except (SparkSinkError, ValueError):
        return
    assert table_uri(found) == found
    assert json.dumps(found)


def test_a_route_of_the_other_format_is_refused() -> None:
    """Options such as `partitionBy` and `batchId` are checked once, for the format of `path`."""
    with pytest.raises(OptionError, match=r"'routes': iceberg://l\.d\.t is an Iceberg table and .*'path' a Delta"):
        SinkOptions.parse({**_options("/lake/t"), "routes": json.dumps({"x": "iceberg://l.d.t"})})
    with pytest.raises(OptionError, match="is not the name of an Iceberg table"):
        SinkOptions.parse({**_options("iceberg://l.d.t"), "routes": json.dumps({"x": "/lake/t"})})


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b"])
def test_a_warehouse_whose_files_would_be_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    """The place of a file is parsed as a URL: tables of `lake#1` and `lake#2` would be in the folder `lake`."""
    (tmp_path / name).mkdir()
    with pytest.raises(OptionError, match=r"catalog\.warehouse=.* would be read as another folder; rename it"):
        verify("iceberg://l.d.t", None, {"catalog.warehouse": str(tmp_path / name)})
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert not list((tmp_path / name).iterdir())


@pytest.mark.parametrize("path", ["l.d.a#b", "l.a?b.t"])
def test_an_iceberg_name_that_ends_the_folder_of_its_table_is_refused(path: str) -> None:
    """The tables `a#1` and `a#2` would be in the folder `a`."""
    with pytest.raises(OptionError, match=r"the folder of this table would end before the [#?]; leave it out"):
        SinkOptions.parse(_options(f"iceberg://{path}"))
