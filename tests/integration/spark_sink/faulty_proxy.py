"""A proxy before an HTTP server that answers some requests wrongly, before or after the server has acted on them."""

import contextlib
import http.client
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CLOSED, CUT, PAGE = "closed connection", "half an answer", "page of another server"
SLOW_DOWN, LATE = "an overloaded store's answer", "answer after the client's timeout"
INTERNAL, RESET = "an error of the store itself", "connection reset in the middle of an upload"
EMPTY, STALE = "empty listing", "listing without the newest object"
DOCUMENT = "an error document with status 200"
_LISTED = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)
_MODIFIED = re.compile(rb"<LastModified>(.*?)</LastModified>")
_KEY = re.compile(rb"<Key>(.*?)</Key>")
_INTERNAL = (
    b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>We encountered an internal error. "
    b"Please try again.</Message></Error>"
)
_SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_DOCUMENTS: dict[int | str, tuple[int, bytes]] = {
    SLOW_DOWN: (503, _SLOW_DOWN),
    INTERNAL: (500, _INTERNAL),
    DOCUMENT: (200, _INTERNAL),
}


@dataclass(slots=True, kw_only=True)
class Fault:
    """A wrong answer.

    Attributes:
        how: a status, or one of the texts above.
        after: whether the server gets the request.
        hits: whether a request, by method and path, is answered so.
        times: how often.
        late_s: how late a LATE answer is, in seconds.
    """

    how: int | str
    after: bool
    hits: Callable[[str, str], bool]
    times: int = 1
    late_s: float = 0.0


class FaultyProxy(ThreadingHTTPServer):
    """The proxy.

    Args:
        target: address of the server.
        port: of the proxy; 0 for any.
        handler: of its requests.

    Attributes:
        faults: those that are left.
    """

    daemon_threads = True

    def __init__(self, target: str, port: int = 0, handler: "type[Handler] | None" = None) -> None:
        self.server = urlsplit(target).netloc
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), handler or Handler)

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


class Handler(BaseHTTPRequestHandler):
    """Passes a request on, or answers it with a fault."""

    server: FaultyProxy
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        fault = self.server.fault_of(self.command, self.path)
        if fault is not None and fault.how == RESET:
            self._reset()
            return
        body = self._body()
        status, headers, found = self._asked(body) if fault is None or fault.after else (200, {}, b"{}")
        if fault is None:
            self._send(status, found, headers=headers)
        elif isinstance(fault.how, int):
            error = {"error": {"message": "injected", "type": "Injected", "code": fault.how}}
            self._send(fault.how, json.dumps(error).encode())
        elif fault.how in _DOCUMENTS:
            self._send(*_DOCUMENTS[fault.how], headers={"Content-Type": "application/xml"})
        elif fault.how in {EMPTY, STALE}:
            self._send(status, _shortened(found, keep=fault.how == STALE), headers=headers)
        elif fault.how == LATE:
            time.sleep(fault.late_s)
            self.close_connection = True
            if fault.after:
                with contextlib.suppress(OSError):  # the client has gone
                    self._send(status, found, headers=headers)
        elif fault.how == PAGE:
            self._send(200, b"<html>log in</html>")
        else:
            if fault.how == CUT:
                self._send(status, found[: len(found) // 2], len(found), headers)
            self.close_connection = True
            self.connection.close()

    def _reset(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0) // 2)
        # A socket that does not linger is reset by its close.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue
        return b"".join(chunks)

    def _asked(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        to = http.client.HTTPConnection(self.server.server, timeout=60)
        left_out = {"host", "connection", "accept-encoding", "content-length", "expect", "transfer-encoding"}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
        try:
            to.request(self.command, self.path, body or None, headers)
            answer = to.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            to.close()

    def _send(
        self, status: int, body: bytes, length: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        found = {name.title(): value for name, value in (headers or {}).items()}
        found = {"Content-Type": "application/json", **found}
        if length is not None or self.command != "HEAD":
            found["Content-Length"] = str(len(body) if length is None else length)
        self.send_response_only(status)
        for name, value in found.items():
            if name not in {"Connection", "Transfer-Encoding"}:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815 -- names of http.server

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def _shortened(listing: bytes, *, keep: bool) -> bytes:
    """Return a listing without its newest object, or without any."""
    found = _LISTED.findall(listing)

    def age(one: bytes) -> tuple[bytes, bytes]:
        at, key = _MODIFIED.search(one), _KEY.search(one)
        return at[1] if at else b"", key[1] if key else b""

    for one in sorted(found, key=age)[-1:] if keep else found:
        listing = listing.replace(one, b"")
    left = len(found) - 1 if keep and found else 0
    return re.sub(rb"<KeyCount>\d+</KeyCount>", b"<KeyCount>%d</KeyCount>" % left, listing)


@contextmanager
def faulty_proxy(target: str) -> Iterator[FaultyProxy]:
    """Run a proxy before a server."""
    with FaultyProxy(target) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
