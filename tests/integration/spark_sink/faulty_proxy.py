"""A proxy before an HTTP server that answers some requests wrongly, before or after the server has acted on them."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CLOSED, CUT, PAGE = "closed connection", "half an answer", "page of another server"


@dataclass(slots=True, kw_only=True)
class Fault:
    """A wrong answer.

    Attributes:
        how: a status, or one of CLOSED, CUT and PAGE.
        after: whether the server gets the request.
        hits: whether a request, by method and path, is answered so.
        times: how often.
    """

    how: int | str
    after: bool
    hits: Callable[[str, str], bool]
    times: int = 1


class FaultyProxy(ThreadingHTTPServer):
    """The proxy.

    Args:
        target: address of the server.

    Attributes:
        faults: those that are left.
    """

    daemon_threads = True

    def __init__(self, target: str) -> None:
        self.server = urlsplit(target).netloc
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        """Address of the proxy."""
        return f"http://127.0.0.1:{self.server_port}"

    def fault_of(self, method: str, path: str) -> Fault | None:
        """Return the fault of this request, and count it."""
        with self._lock:
            found = next((one for one in self.faults if one.times and one.hits(method, path)), None)
            if found is not None:
                found.times -= 1
            return found


class _Handler(BaseHTTPRequestHandler):
    server: FaultyProxy
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault_of(self.command, self.path)
        status, found = self._asked(body) if fault is None or fault.after else (200, b"{}")
        if fault is None:
            self._send(status, found)
        elif isinstance(fault.how, int):
            error = {"error": {"message": "injected", "type": "Injected", "code": fault.how}}
            self._send(fault.how, json.dumps(error).encode())
        elif fault.how == PAGE:
            self._send(200, b"<html>log in</html>")
        else:
            if fault.how == CUT:
                self._send(status, found[: len(found) // 2], len(found))
            self.close_connection = True
            self.connection.close()

    def _asked(self, body: bytes) -> tuple[int, bytes]:
        to = http.client.HTTPConnection(self.server.server, timeout=60)
        left_out = {"host", "connection", "accept-encoding"}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
        try:
            to.request(self.command, self.path, body or None, headers)
            answer = to.getresponse()
            return answer.status, answer.read()
        finally:
            to.close()

    def _send(self, status: int, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()

    do_GET = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 -- names of http.server

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def faulty_proxy(target: str) -> Iterator[FaultyProxy]:
    """Run a proxy before a server."""
    with FaultyProxy(target) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
