"""Stands in for `python -m MODULE`: lets the fork server run the module, with this process's files and environment.

Runs without site-packages (`python -I -S`), so it starts in 15 ms. Without a server it becomes the interpreter itself.
"""

import array
import contextlib
import json
import os
import signal
import socket
import struct
import sys

NUMBER = struct.Struct("<i")
SIZE = struct.Struct("<Q")
_FILES = (0, 1, 2)


def main(server: str, python: str, arguments: list[str]) -> None:
    """Run `python arguments`; return only by an exception."""
    # Only modules are forked; `python -c`, with which Spark asks for the version, is cheap.
    connection = _ask(server, arguments) if arguments[:1] == ["-m"] else None
    if connection is None:
        os.execv(python, [python, *arguments])  # noqa: S606 -- the interpreter that Spark asked for
    with connection:
        forked = _number(connection)
        if forked is None:  # the server ended before it forked
            os.execv(python, [python, *arguments])  # noqa: S606 -- as above
        # Spark ends a reader with SIGTERM, which the reader uses to leave its group.
        signal.signal(signal.SIGTERM, lambda number, _: _send(forked, number))
        _end_as(_number(connection))


def _ask(server: str, arguments: list[str]) -> socket.socket | None:
    folder = os.getcwd()  # noqa: PTH109 -- pathlib takes as long to load as all that this process does
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": folder, "client": os.getpid()}
    body = json.dumps(request).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(server)
        files = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", _FILES))
        connection.sendmsg([SIZE.pack(len(body))], [files])
        connection.sendall(body)
    except OSError:
        connection.close()
        return None
    return connection


def _number(connection: socket.socket) -> int | None:
    try:
        received = connection.recv(NUMBER.size, socket.MSG_WAITALL)
    except ConnectionError:
        return None
    return NUMBER.unpack(received)[0] if len(received) == NUMBER.size else None


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _end_as(status: int | None) -> None:
    """End as the forked process did; `status` is its exit code, or minus the signal that ended it."""
    if status is not None and status < 0:
        if -status != signal.SIGKILL:  # which has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    raise SystemExit(1 if status is None else status)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
