"""A small read-only HTTP server that must not disturb the agent: connections are short."""

import logging
import socket
import socketserver
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

log = logging.getLogger(__name__)

_SLOW_S = 10.0
_MOST = 256


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
        """Close old connections, twice a second: a client that sends single bytes would keep its thread for ever."""
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

    timeout = _SLOW_S  # a silent client must not keep a thread
    server_version = "azimuth"
    sys_version = ""

    def get(self, path: str) -> None:
        """Call `answer` with the content of a path."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer GET and HEAD with `get`, without the query part of the address."""
        self.get(self.path.partition("?")[0])

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
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing, because probes would fill the log."""


def _hang_up(request: socket.socket) -> None:
    """Close a connection from outside; its thread then finds it closed."""
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("live: it was gone already")
