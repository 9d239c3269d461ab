"""An object store that cuts its first answers to a listing; in a process of its own, because delta-rs keeps the lock.

Argument: how many answers. It writes its port to stdout.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LISTED = b"""<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>lake</Name><IsTruncated>false</IsTruncated>
<Contents><Key>table/_delta_log/a.json</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"e"</ETag>
<Size>7</Size></Contents></ListBucketResult>"""


class Cutting(BaseHTTPRequestHandler):
    """Answers each request with the same listing, or with a part of it."""

    left = int(sys.argv[1]) if __name__ == "__main__" else 0

    def do_GET(self) -> None:
        """Answer, and close the connection."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(LISTED)))
        self.end_headers()
        Cutting.left -= 1
        self.wfile.write(LISTED[:20] if Cutting.left >= 0 else LISTED)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
