"""Requests to a catalog that are repeated for some seconds, if it cannot answer for the moment.

A proxy in front of a REST catalog answers 503 while the catalog restarts, a database closes its connections, and a
busy table may delete the metadata file between the catalog's answer and the reading of the file. pyiceberg passes each
of these on, and an error of one look ends a query of Spark.
"""

import contextlib
import errno
import logging
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from spark_sink.errors import plain_with_class

_log = logging.getLogger("azimuth.sink")
_Answer = TypeVar("_Answer")
PATIENCE_S = 10.0
_once = ContextVar("_once", default=False)
_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_LASTING = {errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS, errno.EDQUOT}  # errors of a disk that stay
# Of pyiceberg and thrift, by their names, because both are optional.
_PASSING = {"ServerError", "ServiceUnavailableError", "TTransportException", "TooManyRequestsError"}


@contextlib.contextmanager
def asked_once() -> Iterator[None]:
    """Repeat no request in the block: a check has little time, and the error is its answer."""
    before = _once.set(True)
    try:
        yield
    finally:
        _once.reset(before)


def answered(
    name: str,
    ask: Callable[[], _Answer],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> _Answer:
    """Ask, and ask again while the error is one that passes.

    Args:
        name: what is asked for, in the log.
        ask: the request; it may be repeated although an earlier one had an effect.
        sleep: waits, seconds.
        clock: seconds of a monotonic clock.

    Raises:
        Exception: of the last request, at once if it is not one that passes.
    """
    begun, pause_s, patience_s = clock(), _PAUSE_S, 0.0 if _once.get() else PATIENCE_S
    while True:
        try:
            return ask()
        except Exception as error:  # each catalog has its own errors
            # A request that has waited long for its answer is not repeated: the caller reports it.
            if not passes(error) or clock() + pause_s > begun + patience_s:
                raise
            if pause_s == _PAUSE_S:
                said = plain_with_class(error)
                _log.warning("%s: no answer, asking again for %g s: %s", name, patience_s, said)
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def passes(error: Exception) -> bool:
    """Return whether the same request may succeed a moment later."""
    if isinstance(error, OSError):  # requests' errors are such, too
        return error.errno not in _LASTING
    if (lost := getattr(error, "connection_invalidated", None)) is not None:  # SQLAlchemy's, of any driver
        return lost or getattr(error, "statement", None) is None  # a connection that broke, or could not be made
    return any(one.__name__ in _PASSING for one in type(error).__mro__)
