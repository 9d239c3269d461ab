"""The HTTP side: a page, the status as JSON, metrics and two probes. Read-only."""

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from spark_sink._errors import OptionError
from spark_sink.live._collector import StatusCollector
from spark_sink.live._page import PAGE

Status = Callable[[], Mapping[str, Any]]
_HOST = "127.0.0.1"
_SLOW_S = 10.0
_LARGEST_PORT = 65_535


def parse_address(text: str) -> tuple[str, int]:
    """Read `[HOST]:PORT`; without a host it is this machine only.

    Raises:
        OptionError: there is no port in it.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > _LARGEST_PORT:
        raise OptionError(f"--http {text!r}: need [HOST]:PORT, as :8080")
    return host.strip("[]") or _HOST, int(port)


class LiveServer:
    """Serves until it is closed.

    | path | what |
    |---|---|
    | `/` | the page |
    | `/status.json` | the status as it is |
    | `/metrics` | for Prometheus |
    | `/healthz` | 200 while the agent's loop turns, else 503 |
    | `/readyz` | 200 while the agent may read, else 503 |

    Args:
        address: host and port; port 0 takes a free one.
        status: asked at each request, from any thread; a fleet agent's, with `turns` (its loop does) and `reads` (it
            may read).

    Raises:
        OptionError: the address cannot be had.
    """

    def __init__(self, address: tuple[str, int], status: Status) -> None:
        registry = CollectorRegistry()
        registry.register(StatusCollector(status))
        handler = type("Handler", (_Handler,), {"status": staticmethod(status), "registry": registry})
        try:
            self._server = ThreadingHTTPServer(address, handler)
        except OSError as error:
            raise OptionError(f"--http {address[0]}:{address[1]}: {error.strerror or error}; name another") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/"

    def close(self) -> None:
        """End."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    status: ClassVar[Status]
    registry: ClassVar[CollectorRegistry]
    timeout = _SLOW_S  # a client that says nothing must not hold a thread
    server_version = "azimuth"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", PAGE.encode())
        elif path == "/status.json":
            self._answer(HTTPStatus.OK, "application/json", json.dumps(type(self).status()).encode())
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        elif path in {"/healthz", "/readyz"}:
            found = type(self).status()
            well = found["turns"] if path == "/healthz" else found["reads"]
            text = "ok" if well else "; ".join(found["problems"]) or str(found["standing"])
            self._answer(HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", text.encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"no such page")

    def _answer(self, code: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        # Names of topics and agents come from elsewhere: nothing but this page's own script runs, nothing is fetched.
        self.send_header(
            "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'",
        )
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: probes would fill the log."""
