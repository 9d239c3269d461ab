"""A REST catalog behind a proxy that answers wrongly: no batch is lost or doubled, and a short outage ends none."""

import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from spark_sink.lake.holes_and_doubles import verify
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.ranges.batch_offset import Offset, Range, TopicPartition
from spark_sink.sink import commit_by_compare_and_swap
from spark_sink.sink.commit_by_compare_and_swap import Batch, commit
from tests.integration.spark_sink.faulty_proxy import CLOSED, CUT, PAGE, Fault, FaultyProxy, faulty_proxy
from tests.integration.spark_sink.rest_fixture import rest_catalog
from tests.table_kinds import SCHEMA, rows_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STATUSES = (400, 401, 403, 404, 409, 419, 422, 429, 500, 501, 502, 503, 504)
OUTAGES = (429, 500, 502, 503, 504, CLOSED)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the catalog itself."""
    with rest_catalog(tmp_path_factory.mktemp("rest")) as address:
        yield address


@pytest.fixture
def proxy(catalog: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """A proxy before the catalog."""
    monkeypatch.setattr(commit_by_compare_and_swap, "_FAILURE_PAUSE_S", 0.01)
    with faulty_proxy(catalog) as started:
        yield started


def _storage(address: str) -> Mapping[str, str]:
    return {"catalog.type": "rest", "catalog.uri": address}


class _Agent:
    """Commits batches of three records to a table of its own."""

    def __init__(self, proxy: FaultyProxy) -> None:
        self.name = f"t{uuid.uuid4().hex[:8]}"
        self.address = f"iceberg://lake.raw.{self.name}"
        self.table = IcebergTable(self.address, "g", _storage(proxy.address))

    def write(self, begin: int) -> None:
        landing = IcebergTable(self.address, "", self.table._storage).landing(SCHEMA)  # as a task does
        landing.write(rows_of(TopicPartition("a", 0), range(begin, begin + 3)))
        batch = Batch(offset=Offset.of([Range("a", 0, begin, begin + 3)]), files=landing.close(), schema=SCHEMA)
        commit(self.table, batch)

    def commits(self, method: str, path: str) -> bool:
        """Whether this is the request of a commit."""
        return method == "POST" and path.endswith(f"/tables/{self.name}")

    def looks(self, method: str, path: str) -> bool:
        """Whether this is a look at the table."""
        return method == "GET" and f"/tables/{self.name}" in path

    def creates(self, method: str, path: str) -> bool:
        """Whether this creates a table."""
        return method == "POST" and path.endswith("/tables")


def _is_whole(agent: _Agent, catalog: str, rows: int) -> None:
    report = verify(agent.address, "g", _storage(catalog))
    assert (report.rows, report.duplicates, report.missing) == (rows, 0, 0)


@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize("how", [*STATUSES, CLOSED, CUT, PAGE], ids=str)
def test_a_commit_with_a_wrong_answer_is_there_once(
    proxy: FaultyProxy, catalog: str, how: int | str, *, after: bool
) -> None:
    """The catalog may have committed, whatever the answer is."""
    agent = _Agent(proxy)
    agent.write(0)
    proxy.faults = [Fault(how=how, after=after, hits=agent.commits)]
    agent.write(3)
    assert not proxy.faults[0].times
    agent.write(6)
    _is_whole(agent, catalog, 9)


@pytest.mark.parametrize("how", [*OUTAGES, CUT], ids=str)
@pytest.mark.parametrize("asked", [_Agent.looks, _Agent.creates], ids=["look", "creation"])
def test_a_short_outage_ends_no_batch(
    proxy: FaultyProxy, catalog: str, how: int | str, asked: Callable[[_Agent, str, str], bool]
) -> None:
    """A query of Spark would end with the first error of a look."""
    agent = _Agent(proxy)
    proxy.faults = [Fault(how=how, after=True, hits=lambda method, path: asked(agent, method, path), times=2)]
    for begin in (0, 3):
        agent.write(begin)
    assert not proxy.faults[0].times
    _is_whole(agent, catalog, 6)
