"""The process of a query's reader: it joins the group while Spark starts, and waits until Spark asks for it.

The agent asks the fork server for this process, and holds its connection for as long as it wants the query. If the
connection ends before Spark has asked, the process leaves the group and ends: its partitions must not wait for a reader
that never comes.
"""

import atexit
import contextlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_sink.agent.start.fork_request import Request, receive, send, take_place

JOIN = "join"
"""Name of the reader's options in a request of the agent."""
READER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module that Spark runs in the process of a reader."""
# Spark may load packages before it starts the query; meanwhile other agents read the partitions.
_PATIENCE_S = 30.0
_FILES = 4  # those of a request, and the connection of its client


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingReader:
    """The server's side of the process that waits.

    Attributes:
        watched: the server's file descriptor of the process.
        way: a socket for the request of Spark.
    """

    watched: int
    way: socket.socket

    def send(self, request: Request, files: list[int], connection: socket.socket) -> bool:
        """Hand over a request with its files and its client's connection; return False if the process has ended."""
        try:
            send(self.way, request, [*files, connection.fileno()])
        except OSError:
            return False
        return True


@contextlib.contextmanager
def early_reader(python: str | None, options: Mapping[str, str]) -> Iterator[None]:
    """Let a process join the group, to become the reader of the query that starts in the block.

    Args:
        python: the command that forks Spark's Python processes; without one nothing happens.
        options: of the reader; those of the batches and the rows may differ later.
    """
    with contextlib.ExitStack() as opened:
        if python is not None:
            connection = opened.enter_context(socket.socket(socket.AF_UNIX))
            with contextlib.suppress(OSError):  # the server has ended; Spark starts the reader
                connection.connect(str(Path(python).with_name("socket")))
                send(connection, {JOIN: dict(options)}, [])
        yield


def wait_as_reader(options: Mapping[str, str], way: socket.socket, agent: socket.socket) -> Request:
    """Join the group, wait in this forked process, and return the request that Spark makes; end with the agent.

    Args:
        options: of the reader.
        way: the request comes here.
        agent: the connection of the agent.
    """
    # Imported here, because the agent, which asks for this process, needs neither.
    from spark_sink.monitoring.logs.process_log import log_as_worker  # noqa: PLC0415
    from spark_sink.source.early_membership import EARLY  # noqa: PLC0415

    log_as_worker()
    EARLY.begin(options)
    server = os.pidfd_open(os.getppid())
    with selectors.DefaultSelector() as waiting, way, agent:
        for one in (way, agent, server):
            waiting.register(one, selectors.EVENT_READ)
        ready = waiting.select(_PATIENCE_S)
        if not ready:
            EARLY.leave()
            ready = waiting.select()
        received = receive(way, _FILES) if any(key.fileobj is way for key, _ in ready) else None
    if received is None:
        EARLY.leave()
        os._exit(0)
    os.close(server)
    # Until the reader takes the membership over, nothing else would leave the group.
    atexit.register(EARLY.leave)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    request, [*files, client] = received
    take_place(request, files, socket.socket(fileno=client))
    return request
