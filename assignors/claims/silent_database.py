"""Ends connections to a database that gives no answer, so that the call of the program fails.

psycopg waits for an answer without end. A server that is stopped, or a firewall that forgets a connection, would hold
the program for good, and without a message. pymysql has a time limit of its own, and SQLite has no server.
"""

import contextlib
import os
import socket
import threading
import time
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

_WATCH: Final = "azimuth_silence"


def end_silent_connections(engine: Engine, answer_s: float, connect_s: int = 10) -> None:
    """Let calls fail with the driver's error of a lost connection if the database does not answer.

    Args:
        engine: of any database; its address may set other limits in the driver's own words.
        answer_s: longest time for one statement, or for the end of a transaction.
        connect_s: longest time for a new connection.
    """
    if engine.dialect.driver in {"psycopg", "psycopg2", "pymysql"}:
        limits = {"connect_timeout": connect_s}
        if engine.dialect.driver == "pymysql":
            limits |= dict.fromkeys(("read_timeout", "write_timeout"), max(1, round(answer_s)))
        event.listen(engine, "do_connect", lambda _dialect, _record, _given, named: _complete(named, limits))

    def taken(connection: Any, record: Any, _proxy: object) -> None:  # noqa: ANN401 -- the driver's and the pool's own
        returned(connection, record)
        if hasattr(connection, "fileno"):
            record.info[_WATCH] = _Watch(connection.fileno(), answer_s)

    def returned(_connection: object, record: Any) -> None:  # noqa: ANN401 -- the pool's own
        if (watch := record.info.pop(_WATCH, None)) is not None:
            watch.end()

    event.listen(engine, "checkout", taken)
    event.listen(engine, "before_cursor_execute", _asks)
    event.listen(engine, "checkin", returned)


def _complete(named: dict[str, Any], limits: dict[str, int]) -> None:
    for name, limit_s in limits.items():
        named.setdefault(name, limit_s)


def _asks(connection: Connection, *_statement: object) -> None:
    watch = connection.info.get(_WATCH)
    if watch is not None:
        watch.begin_again()


class _Watch:
    """Shuts a socket down if `begin_again` or `end` does not come in time; the call that waits for an answer fails.

    Args:
        descriptor: of the socket.
        answer_s: the time.
    """

    def __init__(self, descriptor: int, answer_s: float) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self._answer_s = answer_s
        self._lock = threading.Lock()
        self._ended = False
        self.begin_again()
        with self._lock:
            self._timer = self._started(answer_s)

    def begin_again(self) -> None:
        """The next answer may take the full time."""
        self._until = time.monotonic() + self._answer_s

    def end(self) -> None:
        """No answer is awaited any more."""
        with self._lock:
            self._ended = True
            self._timer.cancel()
            self._socket.close()

    def _look(self) -> None:
        with self._lock:
            if self._ended:
                return
            if (left_s := self._until - time.monotonic()) > 0:
                self._timer = self._started(left_s)
                return
        with contextlib.suppress(OSError):  # the connection has ended meanwhile
            self._socket.shutdown(socket.SHUT_RDWR)

    def _started(self, after_s: float) -> threading.Timer:
        timer = threading.Timer(after_s, self._look)
        timer.name, timer.daemon = "database-silence", True
        timer.start()
        return timer
