"""Loads the modules of Spark's Python processes once, and forks a process for each that Spark asks for.

The process is not a child of the JVM, as Spark's own would be. Its client is, and the two are tied:
* if the client is killed, the kernel kills the process immediately (the connection's SIGIO is SIGKILL);
* if the process ends, the client ends with the same code or signal;
* the reader watches the processes above its client (`STARTED_BY`), as if they were its own.
"""

import fcntl
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from setproctitle import getproctitle, setproctitle

from spark_sink.agent.start.fork_client import NUMBER, SIZE
from spark_sink.agent.start.worker_modules import QUERY, TASKS, load
from spark_sink.source.orphan_watch import STARTED_BY

_CREDENTIALS = struct.Struct("3i")
_STDIN = 0
_FILES = 3
_OF_READER = 2  # arguments of the reader's process; a daemon has the module of its workers, too
Request = dict[str, Any]


def serve(listener: socket.socket) -> Request | None:
    """Fork a process for each request, until standard input ends.

    Returns:
        In a forked process its request; in the server, None at the end.
    """
    with selectors.DefaultSelector() as waiting:
        waiting.register(_STDIN, selectors.EVENT_READ)
        waiting.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fileobj == _STDIN:
                    return None
                if key.fileobj is listener:
                    request = _accept(listener, waiting)
                    if request is not None:
                        return request
                else:
                    waiting.unregister(key.fileobj)
                    _tell_the_end(key.fd, *key.data)


def _accept(listener: socket.socket, waiting: selectors.BaseSelector) -> Request | None:
    """Fork for one client; return its request in the forked process."""
    connection, _ = listener.accept()
    received = _receive(connection)
    if received is None:
        connection.close()
        return None
    request, files = received
    process = os.fork()
    if process:
        for file in files:
            os.close(file)
        waiting.register(os.pidfd_open(process), selectors.EVENT_READ, (process, connection))
        return None
    listener.close()
    _tie(connection, of_group=len(request["arguments"]) > _OF_READER)
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    connection.sendall(NUMBER.pack(os.getpid()))
    connection.detach()  # stays open, so that the kernel watches it
    return request


def _receive(connection: socket.socket) -> tuple[Request, list[int]] | None:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    if _CREDENTIALS.unpack(credentials)[1] != os.getuid():
        return None
    try:
        size, files, _, _ = socket.recv_fds(connection, SIZE.size, _FILES)
        body = connection.recv(SIZE.unpack(size)[0], socket.MSG_WAITALL)
        return json.loads(body), files
    except (OSError, ValueError, struct.error):  # the client ended
        return None


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


def _tell_the_end(descriptor: int, process: int, connection: socket.socket) -> None:
    os.close(descriptor)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with connection:
        try:
            connection.sendall(f"{status}\n".encode())  # a shell reads it
        except OSError:  # the client was killed
            return


def run(request: Request) -> None:
    """Run the module of a request in this forked process, as `python -m` does."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    arguments = request["arguments"]
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ[STARTED_BY] = str(request["client"])
    os.chdir(request["folder"])
    sys.path[:0] = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one not in sys.path]
    setproctitle(" ".join([sys.executable, *arguments]))
    sys.argv[:] = arguments[1:]
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


def main(descriptor: int, folder: Path) -> None:
    """Load the modules, and serve on a listening socket; remove its folder at the end."""
    # As the JVM does, which starts Spark's own processes: Ctrl-C is for the driver.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A service manager signals all processes. This one ends with the driver, and then removes its folder.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    getproctitle()  # finds the place of the title, before the environment changes
    load((*TASKS, *QUERY))
    request = serve(socket.socket(fileno=descriptor))
    if request is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        run(request)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
