"""The HTTP side: a page, the status as JSON, metrics and two probes. Read-only."""

import json
import logging
import socket
import socketserver
import sys
import threading
import time
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

log = logging.getLogger(__name__)

Status = Callable[[], Mapping[str, Any]]
_HOST = "127.0.0.1"
_SLOW_S = 10.0
_MOST = 256
_LARGEST_PORT = 65_535


def parse_address(text: str) -> tuple[str, int]:
    """Read `[HOST]:PORT`; without a host it is this machine only.

    Raises:
        OptionError: there is no port in it.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > _LARGEST_PORT:
        raise OptionError(f"--http {text!r}: need [HOST]:PORT, as :8080")
    return host.removeprefix("[").removesuffix("]") or _HOST, int(port)


class LiveServer:
    """Serves until it is closed.

    | path | what |
    |---|---|
    | `/` | the page |
    | `/status.json` | the status as it is |
    | `/metrics` | for Prometheus |
    | `/healthz` | 200 while the agent's threads do their work, else 503: restart it |
    | `/readyz` | 200 while the agent does what it is there for, else 503 and why |

    Args:
        address: host and port; port 0 takes a free one.
        status: asked at each request, from any thread; a fleet agent's, with `turns` (its loop does) and `unready` (why
            it does not do its work, empty where it does).

    Raises:
        OptionError: the address cannot be had.
    """

    def __init__(self, address: tuple[str, int], status: Status) -> None:
        registry = CollectorRegistry()
        registry.register(StatusCollector(status))
        handler = type("Handler", (_Handler,), {"status": staticmethod(status), "registry": registry})
        try:
            self._server = _Server(address, handler)
        except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
            why = (isinstance(error, OSError) and error.strerror) or error
            raise OptionError(f"--http {_shown(*address)}: {why}; name another") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self._server.server_address[:2]
        return f"http://{_shown(str(host), int(port))}/"

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


class _Server(ThreadingHTTPServer):
    """A thread a connection, and no connection for long: one that is slow costs the agent nothing it would miss."""

    daemon_threads = True
    request_queue_size = 128  # by default five, and a client whose call finds no place tries again after a second

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[socket.socket, float] = {}  # the oldest first
        self._changing = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's asks for the host's name, which may take long

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's
        with self._changing:
            self._open[request] = time.monotonic()
            if len(self._open) > _MOST:
                _hang_up(next(iter(self._open)))
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Twice a second: a client that sends a letter now and then would hold its thread for ever."""
        with self._changing:
            for request, since in self._open.items():
                if time.monotonic() - since < _SLOW_S:
                    break
                _hang_up(request)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the base class's
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - the base class's
        """A client that went away, or was hung up on, is nobody's problem."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("live: a request could not be answered", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    status: ClassVar[Status]
    registry: ClassVar[CollectorRegistry]
    timeout = _SLOW_S  # a client that says nothing must not hold a thread
    server_version = "azimuth"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", PAGE)
        elif path == "/status.json":
            self._answer(HTTPStatus.OK, "application/json", json.dumps(type(self).status()))
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        elif path == "/healthz":
            self._probe("" if type(self).status()["turns"] else "its threads do not turn")
        elif path == "/readyz":
            self._probe(str(type(self).status()["unready"]))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", "no such page")

    do_HEAD = do_GET  # noqa: N815 - the base class's way

    def _probe(self, wrong: str) -> None:
        code = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
        self._answer(code, "text/plain; charset=utf-8", wrong or "ok")

    def _answer(self, code: HTTPStatus, kind: str, text: str | bytes) -> None:
        # Names from the environment may hold bytes that were no UTF-8.
        body = text.encode(errors="backslashreplace") if isinstance(text, str) else text
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
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: probes would fill the log."""


def _hang_up(request: socket.socket) -> None:
    """End a connection under its thread, which then finds it ended."""
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("live: it was gone already")


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
