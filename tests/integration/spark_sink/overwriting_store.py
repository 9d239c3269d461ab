"""The part of S3 that a table needs, in memory, by a server that ignores the conditions of requests."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

OBJECTS: Final[dict[str, bytes]] = {}


class Store(BaseHTTPRequestHandler):
    """Objects by path, `/bucket/key`."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Create or overwrite an object."""
        OBJECTS[self._path] = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(200)

    def do_GET(self) -> None:
        """Return an object, or list keys."""
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._answer(200, self._listing(query.get("prefix", [""])[0], query.get("start-after", [""])[0]))
        elif self._path in OBJECTS:
            self._answer(200, OBJECTS[self._path])
        else:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def do_DELETE(self) -> None:
        """Delete an object."""
        OBJECTS.pop(self._path, None)
        self._answer(204)

    @property
    def _path(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _listing(self, prefix: str, after: str) -> bytes:
        found = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(OBJECTS[path])}</Size>"
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag></Contents>'
            for path in sorted(OBJECTS)
            if (key := path.removeprefix(f"{self._path.rstrip('/')}/")).startswith(prefix) and key > after
        )
        return f"<ListBucketResult>{found}<IsTruncated>false</IsTruncated></ListBucketResult>".encode()

    def _answer(self, code: int, body: bytes = b"") -> None:
        self.send_response(code)
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Store).serve_forever()
