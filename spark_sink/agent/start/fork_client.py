"""Stands in for `python -m MODULE`: lets the fork server run the module, with this process's files and environment.

Runs without site-packages (`python -I -S`), so it starts in 15 ms. Without a server it becomes the interpreter itself.
"""

import array
import json
import os
import socket
import struct
import sys

NUMBER = struct.Struct("<i")
SIZE = struct.Struct("<Q")
SHELL = "/bin/sh"
WAITING = "wait"
"""Name of the shell's script, beside the server's socket; `warm_python` writes it."""
KEPT_OPEN = 3
"""File descriptor of the connection in the shell. The kernel kills the forked process when the shell ends."""
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
            os.execv(python, [python, *arguments])  # noqa: S606 -- the interpreter that Spark asked for
        _wait(server, connection, forked)


def _wait(server: str, connection: socket.socket, forked: int) -> None:
    """Become the shell that waits for the forked process: it takes a tenth of an interpreter's memory."""
    os.dup2(connection.fileno(), KEPT_OPEN)
    os.set_inheritable(KEPT_OPEN, True)  # noqa: FBT003 -- its only form
    os.execv(SHELL, [SHELL, os.path.join(os.path.dirname(server), WAITING), str(forked)])  # noqa: S606, PTH118, PTH120 -- a shell of this machine; pathlib loads slowly


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


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
