"""What an agent reports at intervals: its status file, and a line in its log if its status has changed."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_STATUS_S = 0.5
_PROGRESS_S = 10.0

Status = Callable[[], dict[str, Any]]
_NAMED = 3


def start_reports(status: Status, file: Path | None, stop: threading.Event) -> list[threading.Thread]:
    """Start the threads that report until the agent stops.

    Args:
        status: returns the current status of the agent.
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
            raise OSError(f"{file}: the status cannot be written: {error.strerror or error}") from error

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


def progress(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Compare two statuses of an agent.

    Args:
        before: the status at the previous line; empty at first.
        now: the current status.

    Returns:
        One line; None if nothing changed, so that an idle agent logs nothing.
    """
    logged = ("topics", "rows", "problems", "standing")
    if all(before.get(name) == now[name] for name in logged) and before.get("lag") == now["lag"]:
        return None
    seconds = now["at"] - before.get("at", now["at"])
    rows = now["rows"] - before.get("rows", 0)
    rate = f" ({rows / seconds:.0f}/s)" if seconds > 0 else ""
    line = f"{_counted(len(now['topics']), 'topic')}, {rows} rows written{rate}{_behind(now)}"
    if any(now["lag"].values()):
        line += f", the oldest unread record is {max(now.get('lag_s', {}).values(), default=0.0):.0f} s old"
    if now["standing"] != "member":
        line += f", {now['standing']}"
    if now["problems"]:
        line += f", {_counted(len(now['problems']), 'problem')}"
    return line


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _behind(status: Mapping[str, Any]) -> str:
    """Describe the lag; a topic whose lag is unknown must not look like one without lag.

    An agent without topics has no lag: it may have none because no broker has answered yet.
    """
    lag: Mapping[str, int] = status["lag"]
    if not status["topics"] and not lag:
        return ""
    unknown = [topic for topic in status["topics"] if topic not in lag]
    if unknown and not lag:
        return ", lag unknown"
    slowest = sorted((behind, topic) for topic, behind in lag.items() if behind)[: -_NAMED - 1 : -1]
    named = f" ({', '.join(f'{topic} {behind}' for behind, topic in slowest)})" if slowest else ""
    rest = f", lag of {_counted(len(unknown), 'topic')} unknown" if unknown else ""
    return f", {sum(lag.values())} behind{named}{rest}"
