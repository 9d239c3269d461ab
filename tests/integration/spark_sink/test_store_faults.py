"""An object store behind a proxy that answers wrongly: no batch is lost or doubled, and one wrong answer ends none."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_sink.errors import TableError
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink import commit_by_compare_and_swap
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.faulty_proxy import CLOSED, CUT
from tests.integration.spark_sink.faulty_store import FaultyStore, faulty_store
from tests.integration.spark_sink.small_servers import BUCKET, bucket_at, small_aws
from tests.table_kinds import SCHEMA, Kind, kind_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CANARY = "canary-77aa"
A = TopicPartition("a", 0)
HOW = (403, 412, 503, CLOSED, CUT)  # 412: the answer to a condition that does not hold
STEPS = [  # what writes, and what reads; the swap of Delta is a conditional PUT
    ("delta", "PUT", r"_delta_log/\d*[1-9]\.json"),
    ("delta", "GET", r"_delta_log/"),
    ("delta", "PUT", r"\.parquet"),
    ("delta", "HEAD", r"\.parquet"),
    ("iceberg", "PUT", r"\.metadata\.json"),
    ("iceberg", "GET", r"\.metadata\.json"),
    ("iceberg", "PUT", r"\.avro"),
    ("iceberg", "PUT", r"\.parquet"),
]
FIRST_STEPS = [  # of a first batch, which creates the table
    ("PUT", r"_delta_log/0+\.json"),
    ("GET", r"_delta_log/0+\.json"),
    ("GET", "list-type=2"),
    ("PUT", r"\.parquet"),
]


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the store itself."""
    with small_aws(tmp_path_factory.mktemp("s3") / "log") as address:
        yield address


@pytest.fixture(scope="module")
def proxy(aws: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyStore]:
    """A proxy before the store."""
    with faulty_store(aws, tmp_path_factory.mktemp("proxy") / "log") as started:
        yield started


class _Agent:
    """Commits batches of three records to a table of its own."""

    def __init__(self, format_: str, root: Path, aws: str, proxy: str, *, create: bool = True) -> None:
        place = f"s3://{BUCKET}/{uuid.uuid4().hex}"
        self._kind = kind_of(format_, root, bucket_at(place, proxy, CANARY))
        self._direct = kind_of(format_, root, bucket_at(place, aws, CANARY))
        self.table = self._kind.make()
        if create:
            self.table.create(SCHEMA)

    def write(self, begin: int) -> None:
        file = self._kind.write(A, range(begin, begin + 3))
        commit(self.table, Batch(offset=Offset.of([Range("a", 0, begin, begin + 3)]), files=[file], schema=SCHEMA))

    def failure(self, begin: int) -> str:
        """Write, and return the text of the error; empty without one."""
        try:
            self.write(begin)
        except (TableError, OSError) as error:  # OSError: of the test's own look for the columns of an Iceberg table
            return str(error)
        return ""

    def write_twice(self, begin: int, proxy: FaultyStore, fault: dict[str, object]) -> None:
        """Write while one request is answered wrongly, and write again after an error, as an agent does."""
        proxy.set(fault)
        said = self.failure(begin)
        assert CANARY not in said
        if said:
            self.write(begin)
        assert proxy.left() == [0]

    def kind(self) -> Kind:
        """The table, without the proxy."""
        return self._direct


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize(("format_", "method", "path"), STEPS)
def test_a_batch_with_a_wrong_answer_is_there_once(  # noqa: PLR0913, PLR0917 -- fixtures and cases
    aws: str,
    proxy: FaultyStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format_: str,
    method: str,
    path: str,
    how: int | str,
    *,
    after: bool,
) -> None:
    """The store may have done what was asked, whatever its answer is; an agent repeats a batch that failed."""
    monkeypatch.setattr(commit_by_compare_and_swap, "_FAILURE_PAUSE_S", 0.01)
    proxy.set()
    agent = _Agent(format_, tmp_path, aws, proxy.address)
    agent.write(0)
    agent.write_twice(3, proxy, {"how": how, "after": after, "method": method, "path": path})
    agent.write(6)
    rows = agent.kind().rows()
    assert (sorted(offset for _, offset in rows), set(rows.values())) == (list(range(9)), {1})


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize(("method", "path"), FIRST_STEPS)
def test_a_first_batch_with_a_wrong_answer_is_there_once(  # noqa: PLR0913, PLR0917 -- fixtures and cases
    aws: str,
    proxy: FaultyStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    how: int | str,
    *,
    after: bool,
) -> None:
    """Its commit creates the table; without its id, a table in its place is taken for it."""
    monkeypatch.setattr(commit_by_compare_and_swap, "_FAILURE_PAUSE_S", 0.01)
    proxy.set()
    agent = _Agent("delta", tmp_path, aws, proxy.address, create=False)
    agent.write_twice(0, proxy, {"how": how, "after": after, "method": method, "path": path})
    agent.write(3)
    rows = agent.kind().rows()
    assert (sorted(offset for _, offset in rows), set(rows.values())) == (list(range(6)), {1})
