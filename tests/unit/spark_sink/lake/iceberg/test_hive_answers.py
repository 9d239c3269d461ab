"""A Hive metastore that takes a connection and never answers stops no agent for good."""

import socket
from collections.abc import Iterator

import pytest

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import hive_metastore, repeated_requests
from spark_sink.lake.iceberg.iceberg_table import IcebergTable


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a server that answers nothing, for clients that wait for a moment only."""
    monkeypatch.setattr(hive_metastore, "ANSWER_S", 0.2)
    monkeypatch.setattr(repeated_requests, "PATIENCE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"thrift://127.0.0.1:{server.getsockname()[1]}"


def test_a_metastore_that_never_answers_is_an_error(silent: str) -> None:
    """The connection of pyiceberg itself would wait without end."""
    table = IcebergTable("iceberg://lake.raw.events", "g", {"catalog.type": "hive", "catalog.uri": silent})
    with pytest.raises(TableError, match="cannot be read: TTransportException: read timeout"):
        table.refresh()


def test_the_first_metastore_that_accepts_is_asked(silent: str) -> None:
    """The catalog of pyiceberg uses the first address only, also if nothing listens there."""
    uri = f"thrift://127.0.0.1:1, {silent}"
    table = IcebergTable("iceberg://lake.raw.events", "g", {"catalog.type": "hive", "catalog.uri": uri})
    with pytest.raises(TableError, match="cannot be read: TTransportException: read timeout"):
        table.refresh()
