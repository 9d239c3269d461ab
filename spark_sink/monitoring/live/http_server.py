"""A small read-only HTTP server that must not disturb the agent: connections are short."""

import logging
import socket
import socketserver
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from spark_sink.errors import OptionError
from spark_sink.monitoring.live.http_credentials import OPEN, Access

log = logging.getLogger(__name__)

_SLOW_S = 10.0
_MOST = 256
_HOST = "127.0.0.1"
_PROBES = frozenset({"/healthz", "/readyz"})
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


class HttpServer(ThreadingHTTPServer):
    """One thread per connection, with a time limit, so that a slow client does not affect the agent."""

    daemon_threads = True
    request_queue_size = 128  # the default is five, and a client that finds the queue full retries after a second

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[socket.socket, float] = {}  # the oldest first
        self._changing = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without looking up the host's name, which may take long."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's
        """Answer a request; above the limit of connections, close the oldest."""
        with self._changing:
            self._open[request] = time.monotonic()
            if len(self._open) > _MOST:
                _hang_up(next(iter(self._open)))
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close old connections, twice a second: a client that sends single bytes would keep its thread forever."""
        with self._changing:
            for request, since in self._open.items():
                if time.monotonic() - since < _SLOW_S:
                    break
                _hang_up(request)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the base class's
        """Close a connection and forget it."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - the base class's
        """Ignore errors of clients that disconnected, or were disconnected."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("live: a request could not be answered", exc_info=error)


class ReadOnly(BaseHTTPRequestHandler):
    """Answers GET with `get`, HEAD with its headers, and refuses all other methods."""

    access: ClassVar[Access] = OPEN
    timeout = _SLOW_S  # a silent client must not keep a thread
    server_version = "azimuth"
    sys_version = ""

    def get(self, path: str) -> None:
        """Call `answer` with the content of a path."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer GET and HEAD with `get`, without the query part of the address; without a valid token, only probes."""
        path = self.path.partition("?")[0]
        if self._may_read or path in _PROBES:
            self.get(path)
        else:
            self.answer(HTTPStatus.UNAUTHORIZED, "text/plain; charset=utf-8", "a token is needed")

    @property
    def _may_read(self) -> bool:
        return self.access.allows(self.headers.get("Authorization", ""))

    do_HEAD = do_GET  # noqa: N815 - the base class's name

    def answer(self, code: HTTPStatus, kind: str, text: str | bytes) -> None:
        """Send a response."""
        # Names from the environment may contain bytes that are not UTF-8.
        body = text.encode(errors="backslashreplace") if isinstance(text, str) else text
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        # Names of topics and agents are untrusted: only this page's own script may run, and nothing is fetched.
        self.send_header(
            "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'",
        )
        self.send_header("X-Content-Type-Options", "nosniff")
        if code == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="azimuth", Bearer')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def probe(self, wrong: str) -> None:
        """Answer a probe: 200, or 503. The reason names topics, so only requests with access get it."""
        code = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
        shown = wrong if self._may_read else "not ok"
        self.answer(code, "text/plain; charset=utf-8", shown if wrong else "ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing, because probes would fill the log."""


class Serving:
    """Serves in a thread until it is closed.

    Args:
        address: host and port; port 0 chooses a free one.
        handler: answers the requests.
        access: which requests are answered; probes always are, because kubelets send no token.

    Raises:
        OptionError: the address is not available.
    """

    def __init__(self, address: tuple[str, int], handler: type[ReadOnly], access: Access = OPEN) -> None:
        handler.access = access
        try:
            self._server = HttpServer(address, handler)
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            why = (isinstance(error, OSError) and error.strerror) or error
            raise OptionError(f"--http {_shown(*address)}: {why}; name another") from error
        self._scheme = "http"
        if access.tls is not None:
            self._scheme = "https"
            # Each connection's own thread shakes hands, so a silent client delays no other.
            self._server.socket = access.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, name="live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page."""
        host, port = self._server.server_address[:2]
        return f"{self._scheme}://{_shown(str(host), int(port))}/"

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


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _hang_up(request: socket.socket) -> None:
    """Close a connection from outside; its thread then finds it closed."""
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("live: it was gone already")
