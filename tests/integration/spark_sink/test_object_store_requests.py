"""How many requests positions and commits send to an object store, and how many tables wait for it at once."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from spark_sink import positions
from spark_sink.formats.bad_values_quarantined import SCHEMA as QUARANTINE_SCHEMA
from spark_sink.formats.quarantine_addresses import quarantine_of
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.table_contract import DataFile
from spark_sink.lake.table_formats import open_landing
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.query_tables import Tables
from spark_sink.sink.sink_options import SinkOptions
from tests.integration.spark_sink.small_servers import BUCKET, server, with_bucket
from tests.table_kinds import SCHEMA, rows_of

pytestmark = [pytest.mark.integration, pytest.mark.long]

WAIT_S = 0.02  # as a near object store
ROWS = 3  # of a topic in a batch, of which the last is bad
_THREADS = 8  # tables that the sink commits to at once, with their quarantines
POSITIONS = 2  # of one table without its quarantine
# Of one table with its quarantine, which the sink knows from the batch before.
COMMIT = {"delta": 28, "iceberg": 36}


class Request(NamedTuple):
    """A request that the server has noted."""

    begin: float
    end: float
    method: str
    path: str
    status: str

    @property
    def table(self) -> str:
        """The table whose object is asked for, also for one of its quarantine."""
        found = re.search(r"(?:/|%2F)(t\d+)", self.path)
        assert found, self.path
        return found[1]


@dataclass
class Lake:
    """Tables of topics in a bucket.

    Attributes:
        form: format of the tables.
        topics: one for each table.
        options: of the sink.
        address: of all tables, for `positions`.
        notes: the server's file.
    """

    form: str
    topics: Sequence[str]
    options: SinkOptions
    address: str
    notes: Path

    def requests_of(self, call: Callable[[], object]) -> list[Request]:
        """Make a call and return its requests."""
        before = len(self._noted())
        call()
        return self._noted()[before:]

    def files(self, number: int) -> tuple[Offset, dict[str, list[DataFile]]]:
        """Write the files of a batch: good rows and a bad one of each topic."""
        ranges = [Range(topic, 0, ROWS * number, ROWS * (number + 1)) for topic in self.topics]
        with ThreadPoolExecutor(_THREADS) as pool:
            parts = list(pool.map(self._landed, ranges))
        return Offset.of(ranges), {address: found for part in parts for address, found in part.items()}

    def _landed(self, one: Range) -> dict[str, list[DataFile]]:
        [address] = self.options.routes.by_table({one.topic})
        bad = {"topic": one.topic, "partition": 0, "offset": one.end - 1, "value": b"x", "error_class": "NotJson"}
        good = open_landing(address, self.options.storage, SCHEMA, self.options.table)
        good.write(rows_of(TopicPartition(one.topic, 0), range(one.begin, one.end - 1)))
        rejected = open_landing(
            quarantine_of(address), self.options.storage, QUARANTINE_SCHEMA, self.options.quarantine
        )
        rejected.write(pa.RecordBatch.from_pylist([bad], QUARANTINE_SCHEMA))
        return {address: good.close(), quarantine_of(address): rejected.close()}

    def _noted(self) -> list[Request]:
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [Request(*json.loads(line)) for line in lines]


def tables_at_once(requests: Sequence[Request]) -> int:
    """The largest number of tables for which a request was under way at one moment."""
    running: Counter[str] = Counter()
    most = 0
    for _, step, table in sorted(
        event for one in requests for event in ((one.begin, 1, one.table), (one.end, -1, one.table))
    ):
        running[table] += step
        most = max(most, sum(count > 0 for count in running.values()))
    return most


def _delta(endpoint: str, _: Path) -> tuple[dict[str, str], str]:
    storage = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    storage |= {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret"}
    address = f"s3://{BUCKET}/lake/{{topic}}"
    return {"path": address, **{f"storage.{name}": value for name, value in storage.items()}}, address


def _iceberg(endpoint: str, root: Path) -> tuple[dict[str, str], str]:
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"s3://{BUCKET}/lake"}
    catalog |= {"s3.endpoint": endpoint, "s3.region": "us-east-1"}
    catalog |= {"s3.access-key-id": "someone", "s3.secret-access-key": "secret"}
    given = {f"catalog.{name}": value for name, value in catalog.items()}
    return {"path": "lake.raw.{topic}", "tableFormat": "iceberg", **given}, "iceberg://lake.raw.{topic}"


FORMS: Mapping[str, Callable[[str, Path], tuple[dict[str, str], str]]] = {"delta": _delta, "iceberg": _iceberg}


@pytest.fixture(params=[10, pytest.param(50, marks=pytest.mark.slow)])
def count(request: pytest.FixtureRequest) -> int:
    """Number of tables."""
    number: int = request.param
    return number


@pytest.fixture(params=FORMS)
def lake(request: pytest.FixtureRequest, count: int, tmp_path: Path) -> Iterator[Lake]:
    """Topics without tables, and a store that takes its time."""
    notes = tmp_path / "notes"
    program = [sys.executable, str(Path(__file__).with_name("counted_aws.py"))]
    with server(lambda port: [*program, str(port), str(notes), str(WAIT_S)], tmp_path / "log", with_bucket) as endpoint:
        given, address = FORMS[request.param](endpoint, tmp_path)
        given |= {"kafka.group.id": "g", "checkpointLocation": str(tmp_path / "checkpoint")}
        topics = [f"t{number}" for number in range(count)]
        yield Lake(request.param, topics, SinkOptions.parse(given), address, notes)


def test_commits_and_positions_of_many_tables_cost_few_requests_each(lake: Lake) -> None:
    """As many for each of 50 tables as for each of 10; several tables wait together, but not all of them."""
    tables, storage = Tables(lake.options), lake.options.storage
    for number in range(3):
        offset, files = lake.files(number)
        requests = lake.requests_of(lambda: tables.commit(offset, files, SCHEMA, 0))  # noqa: B023 -- called at once
        assert 1 < tables_at_once(requests) <= _THREADS
    by_table = Counter(one.table for one in requests)
    assert by_table.keys() == set(lake.topics)
    assert max(by_table.values()) <= COMMIT[lake.form]

    owned = [TopicPartition(topic, 0) for topic in lake.topics]
    gained = owned[::5]
    found: dict[TopicPartition, int] = {}
    requests = lake.requests_of(lambda: found.update(positions(lake.address, "g", storage, partitions=owned)))
    assert found == dict.fromkeys(owned, 3 * ROWS)
    assert set(Counter(one.table for one in requests).values()) == {POSITIONS}
    assert not [one for one in requests if "_quarantine" in one.path]
    assert tables_at_once(requests) > 1

    requests = lake.requests_of(lambda: positions(lake.address, "g", storage, partitions=gained))
    assert Counter(one.table for one in requests) == dict.fromkeys((one.topic for one in gained), POSITIONS)

    for topic in lake.topics[:2]:
        [address] = lake.options.routes.by_table({topic})
        name = address if lake.form == "delta" else f"iceberg://{address.removeprefix('iceberg://')}"
        report = verify(name, "g", storage)
        assert (report.ok, report.rows) == (True, 3 * (ROWS - 1)), report
