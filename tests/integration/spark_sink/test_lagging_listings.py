"""A store that lists a new object late: no command says that nothing is to be done because it sees an older version."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_sink.errors import TableError
from spark_sink.lake import newest_version
from spark_sink.lake.delta_table import DeltaLakeTable
from spark_sink.lake.double_row_removal import repair
from spark_sink.lake.holes_and_doubles import verify
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from spark_sink.sink.rewind.delta_rewind import rewind
from tests.integration.spark_sink.faulty_proxy import EMPTY, STALE
from tests.integration.spark_sink.faulty_store import FaultyStore, faulty_store
from tests.integration.spark_sink.small_servers import BUCKET, bucket_at, small_aws
from tests.table_kinds import SCHEMA, Bucket, kind_of, rows_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

A = TopicPartition("a", 0)


@dataclass(frozen=True)
class _Lake:
    """A table in a store, and a proxy before the store whose listings lag."""

    uri: str
    direct: dict[str, str]
    lagging: dict[str, str]
    proxy: FaultyStore

    def double(self) -> None:
        """Add rows a second time, as another program does."""
        rows = pa.Table.from_batches([rows_of(A, range(3))])
        write_deltalake(self.uri, rows, mode="append", storage_options=self.direct)

    def restore(self) -> None:
        """Take the rows of the last batch back."""
        DeltaTable(self.uri, storage_options=self.direct).restore(1)

    def lag(self, how: str, times: int) -> None:
        """Let the next listings lack the newest object, or all."""
        self.proxy.set({"how": how, "after": True, "method": "GET", "path": "list-type=2", "times": times})


COMMANDS: dict[str, tuple[Callable[[_Lake], None], Callable[[str, dict[str, str]], object]]] = {
    "repair": (_Lake.double, lambda uri, storage: [one.rows for one in repair(uri, storage, apply=False)]),
    "rewind": (_Lake.restore, lambda uri, storage: [(one.before, one.after) for one in rewind(uri, "g", storage)]),
    "verify": (_Lake.restore, lambda uri, storage: verify(uri, "g", storage).missing),
}
FOUND = {"repair": [3], "rewind": [(6, 3)], "verify": 3}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[_Lake]:
    """A table of two batches of three records."""
    place = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    with small_aws(tmp_path / "aws.log") as aws, faulty_store(aws, tmp_path / "proxy.log") as proxy:
        direct, lagging = (bucket_at(place, one, "secret") for one in (aws, proxy.address))
        kind = kind_of("delta", tmp_path, direct)
        table = kind.make()
        table.create(SCHEMA)
        for begin in (0, 3):
            files = [kind.write(A, range(begin, begin + 3))]
            commit(table, Batch(offset=Offset.of([Range("a", 0, begin, begin + 3)]), files=files, schema=SCHEMA))
        yield _Lake(f"{place}/table", dict(direct.delta), dict(lagging.delta), proxy)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_never_takes_an_older_version_for_the_newest(
    lake: _Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It waits for the listing, and says what it cannot see if the listing stays behind."""
    change, command = COMMANDS[name]
    change(lake)
    lake.lag(STALE, 2)
    assert command(lake.uri, lake.lagging) == FOUND[name]
    monkeypatch.setattr(newest_version, "PATIENCE_S", 0.0)
    for how, said in ((STALE, "the store lists versions up to"), (EMPTY, "the store lists no log of a table")):
        lake.lag(how, 99)
        with pytest.raises(TableError, match=said):
            command(lake.uri, lake.lagging)


def test_the_next_batch_waits_for_the_commit_that_the_listing_lacks(lake: _Lake, tmp_path: Path) -> None:
    """An agent that takes a partition over begins where the last commit ends, which is no hole."""
    bucket = Bucket(address=lake.uri.removesuffix("/table"), delta=lake.lagging, iceberg={})
    files = [kind_of("delta", tmp_path, bucket).write(A, range(6, 9))]
    lake.lag(STALE, 3)
    outcome = commit(
        DeltaLakeTable(lake.uri, "g", lake.lagging),
        Batch(offset=Offset.of([Range("a", 0, 6, 9)]), files=files, schema=SCHEMA),
    )
    assert (outcome.rows, outcome.rows_left_out) == (3, 0)
    assert DeltaTable(lake.uri, storage_options=lake.direct).to_pyarrow_dataset().count_rows() == 9


def test_a_first_batch_is_compared_with_the_table_that_the_listing_lacks(lake: _Lake, tmp_path: Path) -> None:
    """The commit that creates a table is refused; the writer looks again until it sees the other one's."""
    bucket = Bucket(address=lake.uri.removesuffix("/table"), delta=lake.lagging, iceberg={})
    files = [kind_of("delta", tmp_path, bucket).write(A, range(9))]
    lake.lag(EMPTY, 20)
    table = DeltaLakeTable(lake.uri, "g", lake.lagging)
    outcome = commit(table, Batch(offset=Offset.of([Range("a", 0, 0, 9)]), files=files, schema=SCHEMA))
    assert (outcome.rows, outcome.rows_left_out) == (3, 6)
    assert outcome.conflicts > 2
    assert DeltaTable(lake.uri, storage_options=lake.direct).to_pyarrow_dataset().count_rows() == 9
