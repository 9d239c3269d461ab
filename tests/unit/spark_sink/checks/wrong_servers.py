"""Servers that refuse a client: a broker that knows no password, one with a strange certificate, and a registry."""

import contextlib
import http.server
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 17, 18, 36
_REFUSED = 58  # SASL_AUTHENTICATION_FAILED


@contextlib.contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that handles each connection in a thread; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(one,), daemon=True).start()

        def answer(one: socket.socket) -> None:
            with one, contextlib.suppress(OSError, struct.error):
                handle(one)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def refuse_password(one: socket.socket) -> None:
    """Speak Kafka's protocol up to the password, and refuse it."""
    while True:
        size, key, version, number = struct.unpack(">ihhi", _read(one, 12))
        _read(one, size - 8)
        if key == _API_VERSIONS and version >= 3:
            kinds = [(_SASL_HANDSHAKE, 0, 1), (_API_VERSIONS, 0, 3), (_SASL_AUTHENTICATE, 0, 0), (3, 0, 4)]
            body = struct.pack(">hB", 0, len(kinds) + 1) + b"".join(struct.pack(">hhhB", *kind, 0) for kind in kinds)
            body += struct.pack(">iB", 0, 0)
        elif key == _SASL_HANDSHAKE:
            body = struct.pack(">hih", 0, 1, 5) + b"PLAIN"
        else:
            reason = b"invalid credentials"
            body = struct.pack(">hh", _REFUSED, len(reason)) + reason + struct.pack(">i", 0)
        one.sendall(struct.pack(">ii", 4 + len(body), number) + body)


def refuse_database_password(one: socket.socket) -> None:
    """Speak PostgreSQL's protocol up to the user's name, and refuse the password."""
    while True:
        (size,) = struct.unpack(">i", _read(one, 4))
        (code,) = struct.unpack(">i", _read(one, size - 4)[:4])
        if code not in {80877103, 80877104}:  # TLS and GSSAPI are asked for first
            break
        one.sendall(b"N")
    said = b'SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user "u"\0\0'
    one.sendall(b"E" + struct.pack(">i", 4 + len(said)) + said)


def _read(one: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = one.recv(size - len(found))
        if not part:
            raise OSError
        found += part
    return found


def strange_certificate(folder: Path) -> Callable[[socket.socket], None]:
    """A handler that shows a certificate which no authority has signed."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    def handle(one: socket.socket) -> None:
        with context.wrap_socket(one, server_side=True) as secured:
            secured.recv(100)

    return handle


class _EmptyRegistry(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer as a registry does that has no such subject."""
        body = b'{"error_code": 40401, "message": "Subject not found."}'
        self.send_response(404)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextlib.contextmanager
def empty_registry() -> Iterator[str]:
    """A schema registry without subjects; yields its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _EmptyRegistry) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(5)
