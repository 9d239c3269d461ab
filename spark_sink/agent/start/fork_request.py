"""A request for a forked process, and how the process takes the place of its client."""

import fcntl
import json
import os
import signal
import socket
import struct
from collections.abc import Iterable
from typing import Any

from spark_sink.agent.start.fork_client import NUMBER, SIZE

_CREDENTIALS = struct.Struct("3i")
_FILES = 3
_OF_READER = 2  # arguments of the reader's process; a daemon has the module of its workers, too
Request = dict[str, Any]


def receive(connection: socket.socket, files: int = _FILES) -> tuple[Request, list[int]] | None:
    """Return a request of this user with its open files; None from another user, or if the sender ended.

    Args:
        connection: a Unix socket.
        files: the largest number of open files that come along.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    if _CREDENTIALS.unpack(credentials)[1] != os.getuid():
        return None
    try:
        size, received, _, _ = socket.recv_fds(connection, SIZE.size, files)
        body = connection.recv(SIZE.unpack(size)[0], socket.MSG_WAITALL)
        return json.loads(body), received
    except (OSError, ValueError, struct.error):  # the client ended
        return None


def send(connection: socket.socket, request: Request, files: Iterable[int]) -> None:
    """Send a request with open files.

    Raises:
        OSError: the receiver ended.
    """
    body = json.dumps(request).encode()
    socket.send_fds(connection, [SIZE.pack(len(body))], [*files])
    connection.sendall(body)


def take_place(request: Request, files: Iterable[int], connection: socket.socket) -> None:
    """Give this forked process the client's files, tie it to the client, and tell the client its number."""
    _tie(connection, of_group=len(request["arguments"]) > _OF_READER)
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    connection.sendall(NUMBER.pack(os.getpid()))
    connection.detach()  # stays open, so that the kernel watches it


def close(files: Iterable[int]) -> None:
    """Close files that came with a request."""
    for file in files:
        os.close(file)


def _tie(connection: socket.socket, *, of_group: bool) -> None:
    """Let the kernel kill this process, or its group, as soon as the client's end of the connection closes."""
    if of_group:  # Spark's daemon makes its group later: the workers that it forks must die with it
        os.setpgid(0, 0)
    fcntl.fcntl(connection, fcntl.F_SETOWN, -os.getpid() if of_group else os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    try:
        ended = not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return
    if ended:  # before the kernel watched
        os._exit(1)
