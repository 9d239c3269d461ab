"""A catalog that fails for a moment ends no query: looks, openings and creations are repeated for some seconds."""

import logging
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError, ServerError, ServiceUnavailableError, TooManyRequestsError
from requests import ConnectionError as BrokenConnection
from requests.exceptions import ChunkedEncodingError
from sqlalchemy.exc import OperationalError
from thrift.transport.TTransport import TTransportException

from spark_sink.errors import TableError
from spark_sink.lake.iceberg import repeated_requests
from spark_sink.lake.iceberg.repeated_requests import answered, asked_once, passes
from tests.iceberg_batches import Writer, offsets

PASSING = [
    ServerError("502"),
    ServiceUnavailableError("503"),
    TooManyRequestsError("429"),
    BrokenConnection("closed"),
    ChunkedEncodingError("half an answer"),
    FileNotFoundError("a metadata file that another writer has deleted"),
    OperationalError("SELECT", {}, Exception("server closed the connection"), connection_invalidated=True),
    OperationalError(None, None, Exception("connection refused")),
    TTransportException(message="could not connect"),
]
LASTING = [
    ForbiddenError("403"),
    PermissionError(13, "no"),
    OSError(28, "No space left"),
    ValueError("no JSON"),
    OperationalError("INSERT", {}, Exception("command denied")),
]


def _failing(name: str, errors: list[Exception], patch: pytest.MonkeyPatch) -> None:
    """Let the first calls of a method of each SQL catalog fail, one error each."""
    real, left = getattr(SqlCatalog, name), iter(errors)

    def call(*arguments: object, **named: object) -> object:
        if (error := next(left, None)) is not None:
            raise error
        return real(*arguments, **named)

    patch.setattr(SqlCatalog, name, call)


@pytest.mark.parametrize("request_", ["load_table", "create_table", "create_namespace"])
def test_a_catalog_that_fails_once_does_not_end_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    """A query of Spark would end with the first error."""
    writer = Writer(tmp_path)
    for begin in (0, 3):
        with monkeypatch.context() as patch:
            _failing(request_, [ServiceUnavailableError("503")], patch)
            writer.write(begin, begin + 3)
    assert offsets(tmp_path) == list(range(6))


@pytest.mark.parametrize("error", PASSING, ids=lambda one: type(one).__name__)
def test_an_error_that_passes_is_asked_again(error: Exception) -> None:
    """Answers of a proxy, broken connections, and a file that a busy table has deleted since."""
    left = iter([error, error])

    def ask() -> str:
        if (failure := next(left, None)) is not None:
            raise failure
        return "answer"

    assert answered("t", ask, _no_pause) == "answer"


def test_a_catalog_that_stays_away_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the catalog's own words, and one line in the log."""
    monkeypatch.setattr(repeated_requests, "PATIENCE_S", 0.5)
    Writer(tmp_path).write(0, 3)
    _failing("load_table", [ServiceUnavailableError("maintenance")] * 99, monkeypatch)
    with caplog.at_level(logging.WARNING), pytest.raises(TableError, match=r"cannot be read: ServiceUn.*: maintenance"):
        offsets(tmp_path)
    assert [one.getMessage() for one in caplog.records] == [
        "lake.raw.events: no answer, asking again for 0.5 s: ServiceUnavailableError: maintenance"
    ]


@pytest.mark.parametrize("error", LASTING, ids=lambda one: type(one).__name__)
def test_an_error_that_stays_is_not_repeated(error: Exception) -> None:
    """A refusal, a full disk and an answer of something else than a catalog."""
    calls: list[int] = []

    def ask() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        answered("t", ask, _no_pause)
    assert len(calls) == 1
    assert not passes(error)


def test_a_check_asks_once() -> None:
    """A check ends before a catalog has had its seconds, and would say only that there is no answer."""
    calls: list[int] = []

    def ask() -> None:
        calls.append(1)
        raise ServiceUnavailableError("503")

    with asked_once(), pytest.raises(ServiceUnavailableError):
        answered("t", ask, _no_pause)
    assert len(calls) == 1


def test_a_request_that_waited_long_is_not_repeated() -> None:
    """A catalog that takes requests and does not answer them costs one request's time, not several."""
    now = [0.0]

    def silent() -> None:
        now[0] += 60
        raise TimeoutError

    with pytest.raises(TimeoutError):
        answered("t", silent, _no_pause, lambda: now[0])
    assert now == [60]


def _no_pause(_: float) -> None:
    """Wait for nothing."""
