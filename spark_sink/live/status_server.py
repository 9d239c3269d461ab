"""The HTTP endpoints: a page, the status as JSON, metrics and two probes. Read-only."""

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, ClassVar, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from spark_sink.errors import OptionError
from spark_sink.live.http_server import HttpServer, ReadOnly
from spark_sink.live.page import PAGE
from spark_sink.live.status_metrics import StatusCollector

Status = Callable[[], Mapping[str, Any]]
_HOST = "127.0.0.1"
_LARGEST_PORT = 65_535


def parse_address(text: str) -> tuple[str, int]:
    """Read `[HOST]:PORT`; without a host the server is local to this machine.

    Raises:
        OptionError: there is no port in it.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > _LARGEST_PORT:
        raise OptionError(f"--http {text!r}: need [HOST]:PORT, as :8080")
    return host.removeprefix("[").removesuffix("]") or _HOST, int(port)


class LiveServer:
    """Serves until it is closed.

    | path | content |
    |---|---|
    | `/` | the page |
    | `/status.json` | the present status |
    | `/metrics` | metrics for Prometheus |
    | `/healthz` | 200 while the agent's threads work, else 503: restart it |
    | `/readyz` | 200 while the agent ingests, else 503 with the reason |

    Args:
        address: host and port; port 0 chooses a free one.
        status: called at each request, from any thread. It returns a fleet agent's status with `turns` (whether its
            loop runs) and `unready` (the reasons why it does not ingest, empty if it does).

    Raises:
        OptionError: the address is not available.
    """

    def __init__(self, address: tuple[str, int], status: Status) -> None:
        registry = CollectorRegistry()
        registry.register(StatusCollector(status))
        handler = type("Handler", (_Handler,), {"status": staticmethod(status), "registry": registry})
        try:
            self._server = HttpServer(address, handler)
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            why = (isinstance(error, OSError) and error.strerror) or error
            raise OptionError(f"--http {_shown(*address)}: {why}; name another") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page."""
        host, port = self._server.server_address[:2]
        return f"http://{_shown(str(host), int(port))}/"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Handler(ReadOnly):
    status: ClassVar[Status]
    registry: ClassVar[CollectorRegistry]

    def get(self, path: str) -> None:
        """As documented in `LiveServer`."""
        if path == "/":
            self.answer(HTTPStatus.OK, "text/html; charset=utf-8", PAGE)
        elif path == "/status.json":
            self.answer(HTTPStatus.OK, "application/json", json.dumps(type(self).status()))
        elif path == "/metrics":
            self.answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        elif path == "/healthz":
            self._probe("" if type(self).status()["turns"] else "its threads do not turn")
        elif path == "/readyz":
            self._probe(str(type(self).status()["unready"]))
        else:
            self.answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", "no such page")

    def _probe(self, wrong: str) -> None:
        code = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
        self.answer(code, "text/plain; charset=utf-8", wrong or "ok")


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
