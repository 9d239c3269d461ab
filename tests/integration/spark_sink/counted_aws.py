"""A small AWS that notes each request in a file, and lets it wait as an object store far away does.

Arguments: port, file of the notes, seconds of waiting. A note is a line of JSON: `[begin, end, method, path, status]`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

Error = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def main(port: int, notes: str, wait_s: float) -> None:
    """Serve until the process is ended."""
    moto = DomainDispatcherApplication(create_backend_app)

    def noting(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        begin = time.monotonic()
        time.sleep(wait_s)
        status = ""

        def started(
            line: str, headers: list[tuple[str, str]], error: Error | None = None, /
        ) -> Callable[[bytes], object]:
            nonlocal status
            status = line[:3]
            return start(line, headers, error)

        answer = list(moto(environ, started))
        path = environ["PATH_INFO"] + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        line = json.dumps([begin, time.monotonic(), environ["REQUEST_METHOD"], path, status])
        with open(notes, "a", encoding="utf-8") as file:  # noqa: PTH123 -- one write, so that lines do not mix
            file.write(f"{line}\n")
        return answer

    run_simple("127.0.0.1", port, noting, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
