"""The connection to the database of claims: settings by dialect, and errors with a remedy.

Transactions take one round trip if possible: a process that is stopped (SIGSTOP, a long pause) between two round trips
would keep its row locks, and others would skip its rows until it continues. A killed process loses its locks on all
databases. Where a transaction needs more round trips:

* SQLite has one lock for the whole file. The process itself holds it, and no server can release it. A process that is
  stopped between `BEGIN IMMEDIATE` and `COMMIT` prevents all others from writing until it continues or is killed; they
  wait `_TIMEOUT_S` and get a `ClaimsAwayError` each time. This is a limit of SQLite, and the end of the lease does not
  help.
* PostgreSQL: others skip locked rows; only `register` holds locks for more than a statement, and only on new rows.
  `idle_in_transaction_session_timeout`, which is set to the lease, ends the connection and releases the locks.
* MariaDB and MySQL: `wait_timeout` does the same.
"""

import inspect
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from assignors.claims.claim_values import MS
from assignors.claims.silent_database import end_silent_connections
from assignors.clients.masked_addresses import shown
from assignors.errors import ClaimsAwayError, ClaimsError

Answer = TypeVar("Answer")

_TIMEOUT_S = 10
_ATTEMPTS = 10
_PAUSE_S = 0.02
_REST_S = 1.0
_LAST = "azimuth_last"
_SUCH = "such as sqlite:///claims.db"
_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
_MYSQL = frozenset({"mysql", "mariadb"})
_PASSING_STATES = frozenset({"40P01", "40001", "55P03"})
_PASSING_CODES = frozenset({1205, 1213, 1020})
_STATES_AWAY = frozenset({"08", "53"})  # no connection; too many connections
_MYSQL_AWAY = frozenset({1040, 1053, 1077, 1079, 1927})  # too many connections, shutting down, killed
_MYSQL_CLIENT = 2000  # up to 2999: the client's own, such as "server has gone away"
_SQLITE_AWAY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})


class Database:
    """An engine, and requests to it.

    Args:
        address: SQLAlchemy's, such as `sqlite:///claims.db`, `postgresql://user@host/database`, `mariadb://...`.
        lease_s: the server ends a transaction that is idle for this long; SQLite has no server and ends none.
        reads: for reading only, so a file of any owner is not changed.

    Attributes:
        name: the address without secrets.

    Raises:
        ClaimsError: the address is invalid, the driver is missing, or the database is not supported.
    """

    def __init__(self, address: str, lease_s: float, *, reads: bool = False) -> None:
        self._lease_s, self._reads = lease_s, reads
        try:
            url = make_url(address)
            url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
            self.name = shown(url.render_as_string(hide_password=False))
            self._engine = _engine(url, "AUTOCOMMIT")
            # A separate engine, because changing a connection's isolation for one call takes two more round trips.
            self._transactions = _engine(url, "READ COMMITTED")
        except (ArgumentError, NoSuchModuleError, TypeError) as error:  # TypeError: of an option
            raise ClaimsError(f"{shown(address)!r} is not the address of a database, {_SUCH}: {error}") from error
        except ValueError as error:  # its message may contain a part of the password
            raise ClaimsError(
                f"{shown(address)!r} is not the address of a database, {_SUCH}: need a number as the port, and %XX for "
                "each character of a password that has a meaning there"
            ) from error
        except ImportError as error:
            raise ClaimsError(f"{error}: the driver is missing, pip install 'kafka-azimuth[sql]'") from error
        for engine in (self._engine, self._transactions):
            self._prepare(engine)

    @property
    def file(self) -> Path | None:
        """SQLite's file, also for an address in SQLite's own form, `file:...?uri=true`; None for a server."""
        url = self._engine.url
        if url.get_backend_name() != "sqlite":
            return None
        name = str(url.database)
        return Path(unquote(urlsplit(name).path) if "uri" in url.query else name)

    @property
    def dialect(self) -> str:
        """`sqlite`, `postgresql`, `mariadb` or `mysql`; a request to the server distinguishes the last two."""
        name = self._engine.dialect.name
        if name not in _MYSQL:
            return name
        self.ask(lambda connection: connection.connection.dbapi_connection)
        return "mariadb" if getattr(self._engine.dialect, "is_mariadb", False) else "mysql"

    def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """Run statements, each in a separate transaction.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses.
        """
        return self._repeated(self._engine, question)

    def transaction(self, question: Callable[[Connection], Answer]) -> Answer:
        """Run statements in one transaction; on SQLite it takes the write lock at its beginning.

        Raises:
            ClaimsAwayError: the database does not answer.
            ClaimsError: it refuses.
        """
        return self._repeated(self._transactions, question)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()
        self._transactions.dispose()

    def _repeated(self, engine: Engine, question: Callable[[Connection], Answer]) -> Answer:
        for attempt in range(_ATTEMPTS):
            try:
                with engine.begin() as connection:
                    return question(connection)
            except DBAPIError as error:
                if not _passing(error) or attempt == _ATTEMPTS - 1:
                    raise self._named(error) from error
            except SQLAlchemyError as error:
                raise self._named(error) from error
            time.sleep(random.uniform(0, _PAUSE_S * 2 ** min(attempt, 5)))  # noqa: S311 -- spreads colliding processes
        raise AssertionError  # pragma: no cover

    def _named(self, error: SQLAlchemyError) -> ClaimsError:
        cause = getattr(error, "orig", None) or error
        text = " ".join(str(cause).split())
        if _away(error):
            return ClaimsAwayError(f"{self.name}: the database of claims does not answer: {text}")
        return ClaimsError(f"{self.name}: {text}")

    def _prepare(self, engine: Engine) -> None:
        if engine.dialect.name == "sqlite":
            if not self._reads:
                event.listen(engine, "connect", _set_up_sqlite)
            if engine is self._transactions:
                event.listen(engine, "begin", _begin_immediately)
            return
        end_silent_connections(engine, _TIMEOUT_S, _TIMEOUT_S)
        event.listen(engine, "checkin", _note_time)
        event.listen(engine, "checkout", self._ping_after_rest)
        event.listen(
            engine, "connect", self._set_up_mysql if engine.dialect.name in _MYSQL else self._set_up_postgresql
        )

    def _ping_after_rest(self, connection: Any, record: Any, _proxy: object) -> None:  # noqa: ANN401 -- the pool's own
        """Check a connection after a pause; checking before each call would double the round trips."""
        if time.monotonic() - record.info.get(_LAST, time.monotonic()) < _REST_S:
            return
        try:
            self._engine.dialect.do_ping(connection)
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError(str(error)) from error

    def _set_up_postgresql(self, connection: Any, _record: object) -> None:  # noqa: ANN401 -- the driver's own
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_in_transaction_session_timeout = {round(self._lease_s * MS)}")  # as for MySQL
        connection.commit()

    def _set_up_mysql(self, connection: Any, _record: object) -> None:  # noqa: ANN401 -- the driver's own
        with connection.cursor() as cursor:
            # A process that is stopped within a transaction loses its connection and its locks when its lease ends.
            cursor.execute(f"SET SESSION wait_timeout = {max(1, round(self._lease_s))}")
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {_TIMEOUT_S}")


def _engine(url: URL, isolation: str) -> Engine:
    name = url.get_backend_name()
    if "@" in (url.host or ""):  # the driver's error would contain the host, and so half of the password
        raise ValueError(url.host)
    if name == "sqlite":
        if url.database in {None, "", ":memory:"}:
            raise ClaimsError("a database in memory belongs to only one process: name a file, sqlite:///claims.db")
        return create_engine(url, poolclass=QueuePool, connect_args={"timeout": _TIMEOUT_S, "isolation_level": None})
    settings: dict[str, Any] = {"isolation_level": isolation}
    if name == "postgresql":
        settings["connect_args"] = {"application_name": "azimuth-claims"}
    elif name in _MYSQL:
        made = create_engine(url, **settings)
        # Otherwise an option that the driver does not know raises a TypeError at the first request.
        inspect.signature(made.dialect.loaded_dbapi.connect).bind(**made.dialect.create_connect_args(url)[1])
        return made
    else:
        raise ClaimsError(f"{name!r}: claims are kept in SQLite, PostgreSQL, MariaDB or MySQL")
    return create_engine(url, **settings)


def _note_time(_connection: object, record: Any) -> None:  # noqa: ANN401 -- the pool's own
    record.info[_LAST] = time.monotonic()


def _set_up_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 -- the driver's own
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
    # A commit does not wait for the disk while it holds the lock. After a power cut the last commits may be missing,
    # but then all holders of claims are gone, too: a file has no clients on other machines.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _begin_immediately(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _passing(error: DBAPIError) -> bool:
    """Return whether a conflict with another transaction rolled this one back: deadlock, serialisation, lock wait."""
    cause = error.orig
    return getattr(cause, "sqlstate", None) in _PASSING_STATES or _code(cause) in _PASSING_CODES


def _away(error: SQLAlchemyError) -> bool:
    """Return whether the server gave no answer, or reports that it is full or too slow; other errors are refusals."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeoutError)
    if error.connection_invalidated or _passing(error):
        return True
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE_AWAY
    code = _code(cause)
    if isinstance(code, int):
        return code in _MYSQL_AWAY or _MYSQL_CLIENT <= code < _MYSQL_CLIENT + 1000
    state = getattr(cause, "sqlstate", None)
    return state is None or state[:2] in _STATES_AWAY or state.startswith("57P")


def _code(cause: BaseException | None) -> object:
    return cause.args[0] if cause is not None and cause.args else None
