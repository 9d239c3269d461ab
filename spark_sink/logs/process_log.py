"""The log of a process: its own records, and what libraries and child processes write to standard error."""

import contextlib
import faulthandler
import fcntl
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog

from spark_sink.logs.foreign_lines import JoinedLines, read_line
from spark_sink.logs.line_format import FIELDS, OURS, LineFormat, LogFormat, is_ours

WORKERS: Final = "AZIMUTH_WORKERS_LOG"
"""Environment variable by which Spark's workers know that the driver reads their JSON lines."""
# This project logs the important errors of kafka-python itself.
_LEVELS: Final = {"": logging.WARNING, "kafka": logging.CRITICAL} | dict.fromkeys(OURS, logging.INFO)
_STDERR: Final = 2
_PIPE_BYTES: Final = 1 << 20  # librdkafka's threads wait while the pipe is full
_READ_BYTES: Final = 65_536
_JOIN_S: Final = 0.2  # longest wait for the next line of a stack trace
_DRAIN_S: Final = 2.0  # a child process may write for ever


@contextlib.contextmanager
def process_log(form: LineFormat) -> Iterator[None]:
    """Write the log in this format to standard error, until the end of the block.

    Records of this project are written from INFO on, all others from WARNING on. If standard error is the process's own
    (and not a test's), lines that librdkafka or a child process writes there get the format, too.
    """
    with contextlib.ExitStack() as opened:
        stream, captured = _captured(opened)
        handler = logging.StreamHandler(stream)
        handler.setFormatter(form)
        opened.enter_context(_levels(handler))
        opened.callback(logging.captureWarnings, capture=False)
        logging.captureWarnings(capture=True)
        opened.callback(structlog.reset_defaults)
        _join_structlog()
        if captured is not None:
            # The thread that reads the pipe ends with the process, so the trace of a crash must not go through it.
            opened.callback(faulthandler.disable)
            faulthandler.enable(stream)
            opened.enter_context(_reading(captured, handler))
        yield


def log_as_worker() -> None:
    """Write JSON lines in a process that Spark forks workers from, if the driver reads them."""
    if os.environ.get(WORKERS) is None:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormat(LogFormat.JSON))
    _set_levels(handler, _LEVELS)
    _join_structlog()


def _join_structlog() -> None:
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, _as_record],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


def _as_record(_logger: object, _method: str, event: MutableMapping[str, Any]) -> tuple[tuple[Any], dict[str, Any]]:
    """Make a record of the standard library from structlog's event."""
    said, trace = event.pop("event", ""), event.pop("exc_info", None)
    return (said,), {"exc_info": trace, "extra": {FIELDS: dict(event)}}


@contextlib.contextmanager
def _levels(handler: logging.Handler) -> Iterator[None]:
    """Make the handler the only one, and set the levels; restore both at the end."""
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in _LEVELS}
    _set_levels(handler, _LEVELS)
    try:
        yield
    finally:
        _set_levels(None, levels)
        root.handlers[:] = handlers


def _set_levels(handler: logging.Handler | None, levels: Mapping[str, int]) -> None:
    logging.getLogger().handlers[:] = [] if handler is None else [handler]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def _captured(opened: contextlib.ExitStack) -> tuple[TextIO, int | None]:
    """Put a pipe in the place of standard error; return the real one, and the end of the pipe to read."""
    try:
        own = sys.stderr.fileno() == _STDERR
    except (OSError, ValueError, AttributeError):  # closed, missing or a test's
        own = False
    if not own:
        return sys.stderr, None
    sys.stderr.flush()
    real = os.fdopen(os.dup(_STDERR), "w", encoding="utf-8", errors="backslashreplace")
    opened.callback(real.close)
    reading, writing = os.pipe()
    opened.callback(os.close, reading)
    with contextlib.suppress(OSError, AttributeError):  # a system without it, or a limit
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    os.dup2(writing, _STDERR)
    os.close(writing)
    return real, reading


@contextlib.contextmanager
def _reading(captured: int, handler: logging.StreamHandler[TextIO]) -> Iterator[None]:
    """Read the pipe in a thread; at the end restore standard error, and log what the pipe still holds."""
    os.environ[WORKERS] = LogFormat.JSON
    ended, ending = os.pipe()
    reader = threading.Thread(target=_read, args=(captured, ended, handler), name="log-lines", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.environ.pop(WORKERS, None)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os.dup2(handler.stream.fileno(), _STDERR)
        os.close(ending)
        reader.join()
        os.close(ended)


def _read(captured: int, ended: int, handler: logging.Handler) -> None:
    lines, rest, until = JoinedLines(), b"", None
    while until is None or time.monotonic() < until:
        ready = select.select([captured, ended], [], [], _JOIN_S if lines.holds else None)[0]
        if until is None and ended in ready:
            until = time.monotonic() + _DRAIN_S
        if captured in ready:
            part = os.read(captured, _READ_BYTES)
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                _emit(lines.add(_text(line)), handler)
        elif ended in ready:  # the pipe is empty; child processes that still have it are not awaited
            break
        else:
            _emit(lines.take(), handler)
    _emit(lines.add(_text(rest)), handler)
    _emit(lines.take(), handler)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r")


def _emit(text: str | None, handler: logging.Handler) -> None:
    line = read_line(text) if text else None
    if line is not None and line.level >= (logging.INFO if is_ours(line.logger) else logging.WARNING):
        record = logging.LogRecord(line.logger, line.level, "", 0, "%s", (line.message,), None)
        setattr(record, FIELDS, dict(line.fields))
        handler.handle(record)
