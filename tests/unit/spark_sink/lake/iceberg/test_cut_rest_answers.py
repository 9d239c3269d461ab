"""An answer of a REST catalog of which a proxy passes a part: it is requested again, or refused with one sentence."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import catalogs, repeated_requests
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.iceberg.repeated_requests import asked_once
from spark_sink.lake.iceberg.stored_rows import open_stored
from spark_sink.lake.table_addresses import Storage

ADDRESS = "iceberg://lake.raw.events"
CANARY = "canary-77aa"
CONFIG = "/v1/config"
TABLE = "/v1/namespaces/raw/tables/events"


def _table() -> bytes:
    columns = Schema(NestedField(1, "offset", LongType(), required=False))
    metadata = new_table_metadata(columns, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "file:///nowhere")
    given = json.loads(metadata.model_dump_json())
    answer = {
        "metadata-location": "file:///nowhere/v1.metadata.json",
        "metadata": given,
        "config": {"s3.token": CANARY},
    }
    return json.dumps(answer).encode()


class _CuttingCatalog(ThreadingHTTPServer):
    """A catalog with one table, whose next answers to one path are replaced."""

    def __init__(self) -> None:
        self.path, self.parts = "", list[bytes]()
        self.answers = {CONFIG: b'{"defaults": {}, "overrides": {}}', TABLE: _table()}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def storage(self) -> Storage:
        """Options of the catalog."""
        return {"catalog.type": "rest", "catalog.uri": f"http://127.0.0.1:{self.server_port}"}


class _Handler(BaseHTTPRequestHandler):
    server: _CuttingCatalog

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        cut = path == self.server.path and self.server.parts
        content = self.server.parts.pop(0) if cut else self.server.answers[path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[_CuttingCatalog]:
    """A catalog with one table; requests are repeated without a pause."""
    monkeypatch.setattr(repeated_requests, "_PAUSE_S", 0.001)
    catalogs._opened.cache_clear()
    with _CuttingCatalog() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("path", [CONFIG, TABLE], ids=["settings", "table"])
def test_an_answer_that_is_cut_is_requested_again(catalog: _CuttingCatalog, path: str) -> None:
    """Its length fits, so the client sees no broken connection; a query of Spark would end with the first error."""
    whole = catalog.answers[path]
    catalog.path, catalog.parts = path, [b"", whole[:1], whole[: len(whole) // 2], whole[:-1], whole[1:]]
    found = open_stored(ADDRESS, catalog.storage)
    assert (found is not None, catalog.parts) == (True, [])


def test_every_part_of_an_answer_is_an_error_of_the_connection(catalog: _CuttingCatalog) -> None:
    """Not one of pydantic, which shows the beginning and the end of the answer: of credentials, perhaps."""
    whole, opened = catalog.answers[TABLE], open_catalog("lake", catalog.storage)
    assert isinstance(opened, Catalog)
    catalog.path = TABLE
    for kept in range(0, len(whole), 7):
        catalog.parts = [whole[:kept]]
        with pytest.raises(OSError, match=f"^127.0.0.1{TABLE}: the {kept} bytes of the answer are not whole JSON"):
            opened.load_table("raw.events")


@pytest.mark.parametrize(
    ("path", "begin"),
    [(CONFIG, "catalog 'lake' cannot be opened: OSError: "), (TABLE, "lake.raw.events: cannot be read: OSError: ")],
    ids=["settings", "table"],
)
def test_an_answer_that_stays_cut_is_refused_with_one_sentence(catalog: _CuttingCatalog, path: str, begin: str) -> None:
    """Of the settings it was that the options describe no catalog, which a person would then have changed."""
    catalog.path, catalog.parts = path, [catalog.answers[path][:-3]] * 2
    with asked_once(), pytest.raises(TableError) as refused:
        open_stored(ADDRESS, catalog.storage)
    said = str(refused.value)
    assert (said.startswith(begin), "pydantic" in said, CANARY in said) == (True, False, False), said
