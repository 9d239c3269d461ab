"""A small registry that speaks the real one's HTTP."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Server:
    """Subjects with versions, and what was asked."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.down = False
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                code, body = (
                    (500, {"error_code": 50001, "message": "down"}) if server.down else server.answer(self.path)
                )
                content = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def register(self, subject: str, text: str, kind: str, references: list[tuple[str, str, int]] | None = None) -> int:
        """Add a version; returns the id."""
        number = len(self.schemas) + 1
        named = [{"name": name, "subject": other, "version": version} for name, other, version in references or ()]
        self.schemas[number] = {"schema": text, "schemaType": kind, "references": named}
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """Answer as the registry does."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["schemas", "ids"]:
            found = self.schemas.get(int(parts[2]))
            return (200, found) if found else (404, {"error_code": 40403, "message": "Schema not found"})
        versions = self.subjects.get(parts[1], [])
        version = len(versions) if parts[3] == "latest" else int(parts[3])
        if not 1 <= version <= len(versions):
            return 404, {"error_code": 40401, "message": "Subject not found"}
        number = versions[version - 1]
        return 200, {"subject": parts[1], "version": version, "id": number, **self.schemas[number]}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()
