"""Writers that race for a table in an object store that is overloaded: no record is lost or doubled."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink import commit_by_compare_and_swap
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.faulty_store import faulty_store
from tests.integration.spark_sink.small_servers import BUCKET, bucket_at, small_aws
from tests.table_kinds import SCHEMA, Kind, kind_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

KEYS = [TopicPartition("a", 0), TopicPartition("b", 0)]
END = 12
ATTEMPTS = 100


def _write(stormy: Kind, direct: Kind, size: int) -> None:
    """Write all records in batches of this size, as an agent that starts again after every second failure."""
    failures = begin = 0
    table: Any = None
    for _ in range(ATTEMPTS):
        if begin == END:
            return
        # Past the storm: the test looks for the columns of an Iceberg table.
        files = [direct.write(key, range(begin, begin + size)) for key in KEYS]
        ranges = [Range(key.topic, key.partition, begin, begin + size) for key in KEYS]
        try:
            table = table or stormy.make()
            commit(table, Batch(offset=Offset.of(ranges), files=files, schema=SCHEMA))
            table.compact(2)
        except TableError:
            failures += 1
            table = table if failures % 2 else None
        else:
            begin += size
    pytest.fail(f"batches of {size} came to {begin} in {ATTEMPTS} attempts")


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_writers_in_a_storm_of_wrong_answers_write_every_record_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    """503 SlowDown, answers that are cut, and answers after the client has gone: of commits that are there, too."""
    monkeypatch.setattr(commit_by_compare_and_swap, "_FAILURE_PAUSE_S", 0.01)
    folder: Callable[[str], Path] = tmp_path_factory.mktemp
    root, place = folder("catalog"), f"s3://{BUCKET}/{uuid.uuid4().hex}"
    with small_aws(folder("s3") / "log") as aws, faulty_store(aws, folder("proxy") / "log") as proxy:
        direct = kind_of(format_, root, bucket_at(place, aws, "secret"))
        direct.make().create(SCHEMA)
        stormy = kind_of(format_, root, bucket_at(place, proxy.address, "secret", timeout_s=1))
        proxy.set({"share": 0.12, "seed": 1, "late_s": 1.5})
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda size: _write(stormy, direct, size), (3, 4, 6)))
        rows = direct.rows()
    assert (len(rows), set(rows.values())) == (len(KEYS) * END, {1})
