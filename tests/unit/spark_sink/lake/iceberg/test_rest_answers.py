"""A REST catalog that takes a request and never answers stops no agent for good."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import repeated_requests, rest_answers
from spark_sink.lake.iceberg.catalogs import open_catalog
from spark_sink.lake.iceberg.iceberg_table import IcebergTable
from spark_sink.lake.table_addresses import Storage

_CONFIG = b'{"defaults": {}, "overrides": {}}'


class _SilentCatalog(ThreadingHTTPServer):
    """A catalog that answers the paths in `answered`, and keeps all other requests open."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def storage(self) -> Storage:
        """Options of the catalog."""
        return {"catalog.type": "rest", "catalog.uri": f"http://127.0.0.1:{self.server_port}"}


class _Handler(BaseHTTPRequestHandler):
    server: _SilentCatalog

    def do_GET(self) -> None:
        if self.path not in self.server.answered:
            self.server.over.wait()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(_CONFIG)))
        self.end_headers()
        self.wfile.write(_CONFIG)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[_SilentCatalog]:
    """A catalog that answers nothing, and clients that wait for it for a moment only."""
    monkeypatch.setattr(rest_answers, "ANSWER_S", 0.2)
    monkeypatch.setattr(repeated_requests, "PATIENCE_S", 0.0)
    with _SilentCatalog() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.over.set()
        server.shutdown()


def test_a_catalog_that_never_answers_is_an_error(catalog: _SilentCatalog) -> None:
    """Opening it holds a lock, so every other table of the process would wait, too."""
    with pytest.raises(TableError, match="cannot be opened"):
        open_catalog("lake", catalog.storage)


def test_a_catalog_that_falls_silent_is_an_error(catalog: _SilentCatalog) -> None:
    """The agent looks again, and ends with the sentence if it stays so."""
    catalog.answered.add("/v1/config")
    with pytest.raises(TableError, match="cannot be read: ReadTimeout"):
        IcebergTable("iceberg://lake.raw.events", "g", catalog.storage).refresh()
