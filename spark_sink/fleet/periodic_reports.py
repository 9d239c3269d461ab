"""What an agent reports at intervals: its status file, and lines in its log."""

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_sink.fleet.progress_lines import progress

log = logging.getLogger(__name__)

_STATUS_S = 0.5
_PROGRESS_S = 10.0

Status = Callable[[], dict[str, Any]]


def start_reports(status: Status, file: Path | None, stop: threading.Event) -> list[threading.Thread]:
    """Start the threads that report until the agent stops.

    Args:
        status: returns the present status of the agent.
        file: the status file; None for none.
        stop: ends the threads.
    """
    threads = [threading.Thread(target=_repeat, args=(_lines(status), _PROGRESS_S, stop), daemon=True)]
    if file is not None:
        write = _file(status, file)
        threads.append(threading.Thread(target=_repeat, args=(write, _STATUS_S, stop), daemon=True))
    for thread in threads:
        thread.start()
    return threads


def write_status(file: Path, status: dict[str, Any]) -> None:
    """Write the status atomically: a reader never sees a partial file."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(json.dumps(status))
    new.replace(file)


def _repeat(report: Callable[[], None], every_s: float, stop: threading.Event) -> None:
    """Report until the end. An error of one report is logged, and the next one follows; a repeated error is not."""
    last = ""
    while not stop.wait(every_s):
        try:
            report()
            last = ""
        except Exception as error:
            if last != repr(error):
                expected = isinstance(error, OSError)
                log.warning("fleet: %s", error if expected else "no report", exc_info=None if expected else error)
            last = repr(error)


def _file(status: Status, file: Path) -> Callable[[], None]:
    def write() -> None:
        try:
            write_status(file, status())
        except OSError as error:
            raise OSError(f"{file}: the status cannot be written: {error}") from error

    return write


def _lines(status: Status) -> Callable[[], None]:
    before: dict[str, Any] = {}

    def write() -> None:
        nonlocal before
        now = status()
        line = progress(before, now)
        if line is not None:
            log.info("fleet: %s", line)
        before = now

    return write
