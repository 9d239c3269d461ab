"""Serving a little over HTTP beside work that must not notice: read-only, and no client for long."""

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
        """Bind without the look-up of the host's name, which may take long."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's
        """Answer it; above the limit of connections, the oldest is closed."""
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
        """Close a connection and forget it."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - the base class's
        """A client that went away, or was hung up on, is nobody's problem."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.error("live: a request could not be answered", exc_info=error)


class ReadOnly(BaseHTTPRequestHandler):
    """Answers GET by `get`, HEAD with the head of that, and refuses everything else."""

    timeout = _SLOW_S  # a client that says nothing must not hold a thread
    server_version = "azimuth"
    sys_version = ""

    def get(self, path: str) -> None:
        """Call `answer` with what is at a path."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer GET and HEAD by `get`, without the query part of the address."""
        self.get(self.path.partition("?")[0])

    do_HEAD = do_GET  # noqa: N815 - the base class's way

    def answer(self, code: HTTPStatus, kind: str, text: str | bytes) -> None:
        """Send it."""
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
