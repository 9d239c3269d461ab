"""The log of a process: its own records, and what libraries and child processes write to standard error."""

import contextlib
import json
import logging
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog

from spark_sink.monitoring.logs.line_format import FIELDS, OURS, LineFormat, LogFormat

WORKERS: Final = "AZIMUTH_WORKERS_LOG"
"""Environment variable by which Spark's workers know the format of the driver's log."""
# This project logs the important errors of kafka-python itself.
_LEVELS: Final = {"": logging.WARNING, "kafka": logging.CRITICAL} | dict.fromkeys(OURS, logging.INFO)
_STDERR: Final = 2
_DRAIN_S: Final = 5.0  # longest wait for the reader at the end, if nothing takes its lines


@contextlib.contextmanager
def process_log(form: LineFormat) -> Iterator[None]:
    """Write the log in this format to standard error, until the end of the block.

    Records of this project are written from INFO on, all others from WARNING on. In JSON, lines that librdkafka or a
    child process writes to standard error get the format, too, if it is the process's own (and not a test's): a
    separate process reads them. A thread could not: librdkafka writes while it holds the interpreter's lock, so if
    nothing takes the lines for a while, both would wait for each other. And what a crash writes last would be lost.
    """
    with contextlib.ExitStack() as opened:
        stream = sys.stderr
        if form.form is LogFormat.JSON and _is_own_stderr():
            stream = opened.enter_context(_formatted_stderr(form))
        handler = _Handler(stream)
        handler.setFormatter(form)
        opened.enter_context(_levels(handler))
        opened.callback(logging.captureWarnings, capture=False)
        logging.captureWarnings(capture=True)
        opened.callback(structlog.reset_defaults)
        _join_structlog()
        os.environ[WORKERS] = form.form
        opened.callback(os.environ.pop, WORKERS, None)
        yield


def log_as_worker() -> None:
    """Write the driver's format in a process that Spark forks workers from; change nothing without such a driver."""
    if (form := os.environ.get(WORKERS)) is None:
        return
    handler = _Handler()
    handler.setFormatter(LineFormat(LogFormat(form)))
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


class _Handler(logging.StreamHandler[TextIO]):
    """Drops a line that cannot be written: a report on standard error could not be written either."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        """Do nothing."""


def _is_own_stderr() -> bool:
    try:
        return sys.stderr.fileno() == _STDERR
    except (OSError, ValueError, AttributeError):  # closed, missing or a test's
        return False


def _close(stream: TextIO) -> None:
    with contextlib.suppress(OSError):  # a full disk, again
        stream.close()


@contextlib.contextmanager
def _formatted_stderr(form: LineFormat) -> Iterator[TextIO]:
    """Let another process read standard error; yield the real one."""
    sys.stderr.flush()
    with contextlib.ExitStack() as opened:
        real = os.fdopen(os.dup(_STDERR), "w", encoding="utf-8", errors="backslashreplace")
        opened.callback(_close, real)
        answer, answering = os.pipe()
        opened.callback(os.close, answer)
        # A session of its own: Ctrl-C and the end of a terminal are for this process.
        command = [sys.executable, "-m", "spark_sink.monitoring.logs.stderr_reader"]
        reader = subprocess.Popen(  # noqa: S603 -- a module of this package
            command, stdin=subprocess.PIPE, stdout=real, start_new_session=True, pass_fds=(answering,)
        )
        os.close(answering)
        assert reader.stdin is not None  # noqa: S101 -- as asked for
        end = secrets.token_hex()
        with reader.stdin as pipe:
            pipe.write(json.dumps({**form.value(), "end": end, "answering": answering}).encode() + b"\n")
            pipe.flush()
            os.dup2(pipe.fileno(), _STDERR)
        try:
            yield real
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            _await_reader(end, answer)
            os.dup2(real.fileno(), _STDERR)


def _await_reader(end: str, answer: int) -> None:
    """Wait until the reader has written all lines so far. It may live on: Spark's JVM still has the pipe.

    Args:
        end: the line that the reader answers.
        answer: a pipe that the reader closes as its answer, or with its end.
    """
    # An empty line before it: another process may have written a part of a line. The pipe may be full.
    with contextlib.suppress(OSError):
        if select.select([], [_STDERR], [], _DRAIN_S)[1]:
            os.write(_STDERR, f"\n{end}\n".encode())
            select.select([answer], [], [], _DRAIN_S)
