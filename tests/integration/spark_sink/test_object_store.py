"""A table in a bucket: the same compare and swap, over an object store's conditional writes."""

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyarrow.fs import FileSelector

from spark_sink import positions
from spark_sink.demo.cluster import Cluster
from spark_sink.errors import TableError
from spark_sink.lake import conditional_put_check
from spark_sink.lake.conditional_put_check import CHECK
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.parquet_landing import Landing
from spark_sink.lake.table_storage import filesystem
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.small_servers import BUCKET, server, small_aws, with_bucket

pytestmark = pytest.mark.integration

CANARY = "canary-9fd1"
SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
PARTITIONS = 2


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The options of a small S3 with one bucket."""
    with small_aws(tmp_path_factory.mktemp("s3") / "log") as endpoint:
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": CANARY,
        }


@pytest.fixture
def overwriting(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The options of a store that ignores the conditions of requests."""
    program = str(Path(__file__).with_name("overwriting_store.py"))
    with server(lambda port: [sys.executable, program, str(port)], tmp_path / "log", with_bucket) as endpoint:
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "x",
            "AWS_SKIP_SIGNATURE": "true",
        }


def test_a_store_that_overwrites_log_entries_is_refused_before_the_first(overwriting: Mapping[str, str]) -> None:
    """Two agents would overwrite each other's commits, and each would believe that its rows are in the table."""
    table = f"s3://{BUCKET}/t"
    with pytest.raises(TableError, match="overwrites an object although the request forbids it"):
        DeltaLakeTable(table, "g", overwriting).create(SCHEMA)
    assert not [
        one for one in filesystem(table, overwriting).get_file_info(FileSelector("", recursive=True)) if one.is_file
    ]
    DeltaLakeTable(table, "g", {**overwriting, CHECK: "false"}).create(SCHEMA)


def test_the_check_of_a_store_leaves_nothing_behind(
    storage: Mapping[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is made, not skipped because of an error, and a reader finds only the table."""
    monkeypatch.setattr(conditional_put_check, "_CHECKED", set())
    table = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    DeltaLakeTable(table, "g", storage).create(SCHEMA)
    assert not [one for one in caplog.records if not one.name.startswith("kafka")]  # of an earlier test's client
    assert conditional_put_check._CHECKED
    found = filesystem(table, storage).get_file_info(FileSelector("", recursive=True))
    assert {one.path.split("/")[0] for one in found} == {"_delta_log"}


def _land(table: str, storage: Mapping[str, str], ranges: list[Range]) -> Batch:
    landing = Landing(filesystem(table, storage), SCHEMA)
    for one in ranges:
        numbers = list(range(one.begin, one.end))
        columns = [[one.topic] * len(numbers), [one.partition] * len(numbers), numbers, [b"v"] * len(numbers)]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        landing.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    return Batch(offset=Offset.of(ranges), files=landing.close(), schema=SCHEMA)


def test_writers_that_race_for_a_table_in_a_bucket_write_every_record_once(storage: Mapping[str, str]) -> None:
    """Each brings all records, in batches of another size; what another was faster with is left out or cut."""
    table, end = f"s3://{BUCKET}/{uuid.uuid4().hex}", 24

    def write(size: int) -> None:
        handle = DeltaLakeTable(table, "g", storage)
        for begin in range(0, end, size):
            ranges = [Range("a", number, begin, begin + size) for number in range(PARTITIONS)]
            commit(handle, _land(table, storage, ranges))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, (4, 6, 8)))
    report = verify(table, "g", storage)
    assert (report.rows, report.ok) == (PARTITIONS * end, True)
    assert positions(table, "g", storage) == {TopicPartition("a", number): end for number in range(PARTITIONS)}


def test_a_bucket_that_is_not_there_is_one_sentence_without_secrets(storage: Mapping[str, str]) -> None:
    """What the store says goes into the sentence; what it was given does not."""
    with pytest.raises(TableError) as error:
        DeltaLakeTable("s3://nowhere/table", "g", storage).create(SCHEMA)
    assert "s3://nowhere/table" in str(error.value)
    assert CANARY not in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("landing", ["direct", "rows"])
@pytest.mark.parametrize("format_", ["delta", pytest.param("iceberg", marks=pytest.mark.matrix)])
def test_an_agent_lands_in_a_bucket_and_the_commands_find_it(  # noqa: PLR0913, PLR0917 - fixtures and cases
    cluster: Cluster,
    topic: Callable[..., str],
    producer: Producer,
    storage: Mapping[str, str],
    tmp_path: Path,
    landing: str,
    format_: str,
) -> None:
    """Twice, so that a restart finds its positions there."""
    name, config = topic("lake", PARTITIONS), tmp_path / "sink.toml"
    place = (_in_delta if format_ == "delta" else _in_iceberg)(storage, tmp_path)
    lines = [
        f'bootstrap_servers = "{cluster.bootstrap_servers}"',
        f'group = "{name}"\nsubscribe = "{name}"\ncheckpoint = "{tmp_path}/checkpoint"',
        f'trigger = "available-now"\nmaster = "local[2]"\nlanding = "{landing}"',
        *place.settings,
    ]
    config.write_text("\n".join(lines))
    for _ in range(2):
        for number in range(20):
            producer.produce(name, value=str(number), partition=number % PARTITIONS)
        producer.flush()
        done = _azimuth("sink", "--config", str(config))
        assert done.returncode == 0, done.stderr[-3000:]
        assert CANARY not in done.stdout + done.stderr
    flags = [word for key, value in place.storage.items() for word in ("--storage", f"{key}={value}")]
    checked = _azimuth("verify", place.address, "--json", *flags)
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["rows"] == 40
    assert positions(place.address, name, place.storage) == {TopicPartition(name, number): 20 for number in range(2)}


@dataclass(frozen=True, slots=True)
class _Place:
    """A table in the bucket: its address and options for the commands, and lines of an agent's file."""

    address: str
    storage: Mapping[str, str]
    settings: Sequence[str]


def _in_delta(storage: Mapping[str, str], _: Path) -> _Place:
    table = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    return _Place(table, storage, [f'table = "{table}"', "[storage]", *_lines(storage)])


def _in_iceberg(storage: Mapping[str, str], root: Path) -> _Place:
    """Return a table whose files are in the bucket, by the catalog of a local database."""
    names = {"endpoint": "ENDPOINT_URL", "region": "REGION"}
    names |= {"access-key-id": "ACCESS_KEY_ID", "secret-access-key": "SECRET_ACCESS_KEY"}
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"s3://{BUCKET}/{uuid.uuid4().hex}"}
    catalog |= {f"s3.{own}": storage[f"AWS_{name}"] for own, name in names.items()}
    settings = ['table = "lake.raw.events"', 'table_format = "iceberg"', "[catalog]", *_lines(catalog)]
    return _Place("iceberg://lake.raw.events", {f"catalog.{key}": value for key, value in catalog.items()}, settings)


def _lines(values: Mapping[str, str]) -> Sequence[str]:
    return [f'"{key}" = "{value}"' for key, value in values.items()]


def _azimuth(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spark_sink", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
