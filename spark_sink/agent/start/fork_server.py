"""Loads the modules of Spark's Python processes once, and forks a process for each that Spark asks for.

The process is not a child of the JVM, as Spark's own would be. Its client is, and the two are tied:
* if the client is killed, the kernel kills the process immediately (the connection's SIGIO is SIGKILL);
* if the process ends, the client ends with the same code or signal;
* the reader watches the processes above its client (`STARTED_BY`), as if they were its own.
"""

import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
from pathlib import Path

from setproctitle import getproctitle, setproctitle

from spark_sink.agent.start.early_reader import JOIN, READER, WaitingReader, wait_as_reader
from spark_sink.agent.start.fork_request import Request, close, receive, take_place
from spark_sink.agent.start.worker_modules import QUERY, TASKS, load
from spark_sink.source.orphan_watch import STARTED_BY

_STDIN = 0


class ForkServer:
    """Forks a process for each request.

    Args:
        listener: a socket on which clients connect.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._waiting = selectors.DefaultSelector()
        self._reader: WaitingReader | None = None

    def serve(self) -> Request | None:
        """Fork a process for each request, until standard input ends.

        Returns:
            In a forked process its request; in the server, None at the end.
        """
        with self._waiting:
            self._waiting.register(_STDIN, selectors.EVENT_READ)
            self._waiting.register(self._listener, selectors.EVENT_READ)
            while True:
                for key, _ in self._waiting.select():
                    if key.fileobj == _STDIN:
                        return None
                    if key.fileobj is self._listener:
                        request = self._accept()
                        if request is not None:
                            return request
                    else:
                        self._waiting.unregister(key.fileobj)
                        self._tell_the_end(key.fd, *key.data)

    def _accept(self) -> Request | None:
        """Fork for one client; return its request in the forked process."""
        connection, _ = self._listener.accept()
        received = receive(connection)
        if received is None:
            connection.close()
            return None
        request, files = received
        if JOIN in request:
            return self._fork_reader(request, connection)
        if self._hand_over(request, files, connection):
            return None
        process = os.fork()
        if process:
            close(files)
            self._watch(process, connection)
            return None
        self._listener.close()
        take_place(request, files, connection)
        return request

    def _fork_reader(self, request: Request, connection: socket.socket) -> Request | None:
        """Fork the process that joins the group and waits for Spark's request; return that request there."""
        ours, its = socket.socketpair()
        process = os.fork()
        if process:
            its.close()
            self._reader = WaitingReader(watched=self._watch(process, connection), way=ours)
            return None
        self._listener.close()
        ours.close()
        return wait_as_reader(request[JOIN], its, connection)

    def _hand_over(self, request: Request, files: list[int], connection: socket.socket) -> bool:
        """Let the waiting reader answer a request for one; return False if it cannot, or there is none."""
        if self._reader is None or request["arguments"][1:2] != [READER]:
            return False
        reader, self._reader = self._reader, None
        with reader.way:
            if not reader.send(request, files, connection):
                return False
        close(files)
        process, of_agent = self._waiting.get_key(reader.watched).data
        of_agent.close()
        self._waiting.modify(reader.watched, selectors.EVENT_READ, (process, connection))
        return True

    def _watch(self, process: int, connection: socket.socket) -> int:
        watched = os.pidfd_open(process)
        self._waiting.register(watched, selectors.EVENT_READ, (process, connection))
        return watched

    def _tell_the_end(self, descriptor: int, process: int, connection: socket.socket) -> None:
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if self._reader is not None and self._reader.watched == descriptor:
            self._reader.way.close()
            self._reader = None
        with connection:
            try:
                connection.sendall(f"{status}\n".encode())  # a shell reads it
            except OSError:  # the client was killed
                return


def run(request: Request) -> None:
    """Run the module of a request in this forked process, as `python -m` does."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:  # the reader that waited has its own
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
    request = ForkServer(socket.socket(fileno=descriptor)).serve()
    if request is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        run(request)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
