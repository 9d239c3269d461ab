"""Reads what librdkafka, Spark, its workers and Python itself write to standard error. Pure."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# %3|1700000000.123|FAIL|azimuth.a#consumer-1| [thrd:...]: text
_LIBRDKAFKA: Final = re.compile(r"%(\d)\|[\d.]+\|(\w+)\|([^|]*)\|\s*(.*)", re.DOTALL)
# 26/11/23 04:05:06 WARN NativeCodeLoader: text
_LOG4J: Final = re.compile(
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ([^\s:]+): ?(.*)", re.DOTALL
)
_SYSLOG: Final = (*[logging.CRITICAL] * 3, logging.ERROR, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)
_LOG4J_LEVELS: Final = {"TRACE": logging.DEBUG, "WARN": logging.WARNING, "FATAL": logging.CRITICAL}
_CONTINUES: Final = re.compile(r"\s|Caused by: |Traceback \(most recent|During handling of|The above exception was")
_ENDS_TRACEBACK: Final = re.compile(r"[A-Za-z_][\w.]*(: .*)?$")
_TRACEBACK: Final = "Traceback (most recent call last):"
# Greetings of Spark and Java that say nothing about this process.
_NOISE: Final = (
    "Setting default log level to",
    "To adjust logging level use",
    "Using Spark's default log4j profile",
    "WARNING: Using incubator modules",
    ":: loading settings",
)
_MOST_LINES: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLine:
    """One log line of another program or library.

    Attributes:
        level: as in the standard library's logging.
        logger: its origin.
        message: the text; several lines for a stack trace.
        fields: named values, such as the client of librdkafka.
    """

    level: int
    logger: str
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def read_line(text: str) -> ForeignLine | None:
    """Read one line, with the lines of its stack trace; None for an empty line or a greeting.

    A line in no known format is a warning: it may be the last words of a process.
    """
    if not text.strip() or text.startswith(_NOISE):
        return None
    if found := _LIBRDKAFKA.match(text):
        level, facility, client, said = found.groups()
        return ForeignLine(
            level=_SYSLOG[min(int(level), 7)],
            logger="librdkafka",
            message=f"{facility}: {said}",
            fields={"client": client},
        )
    if found := _LOG4J.match(text):
        name, source, said = found.groups()
        level = _LOG4J_LEVELS.get(name) or logging.getLevelNamesMapping()[name]
        return ForeignLine(level=level, logger="spark", message=f"{source}: {said}")
    if text.startswith("{") and (own := _own_line(text)) is not None:
        return own
    return ForeignLine(level=logging.ERROR if _TRACEBACK in text else logging.WARNING, logger="stderr", message=text)


def _own_line(text: str) -> ForeignLine | None:
    """Read a JSON line of this project, as Spark's workers write them."""
    try:
        found = json.loads(text)
        level = logging.getLevelNamesMapping()[found.pop("level").upper()]
        line = ForeignLine(level=level, logger=found.pop("logger"), message=found.pop("message"), fields=found)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    if not isinstance(line.logger, str) or not isinstance(line.message, str):
        return None
    found.pop("time", None)
    return line


class JoinedLines:
    """Joins the lines of a stack trace to the line before them."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._in_traceback = False

    def add(self, line: str) -> str | None:
        """Take a line, and return the one before it if that is complete."""
        if self._held and len(self._held) < _MOST_LINES and self._continues(line):
            self._held.append(line)
            return None
        before = self.take()
        self._held = [line]
        self._in_traceback = line.startswith(_TRACEBACK)
        return before

    def take(self) -> str | None:
        """Return the line that waits."""
        text = "\n".join(self._held) if self._held else None
        self._held, self._in_traceback = [], False
        return text

    def _continues(self, line: str) -> bool:
        if self._in_traceback and _ENDS_TRACEBACK.match(line):
            self._in_traceback = False  # the error itself; the next line is another one
            return True
        if _CONTINUES.match(line):
            self._in_traceback |= line.startswith(_TRACEBACK)
            return True
        return False
