"""A log record as a line of text, or as one JSON object on one line."""

import enum
import json
import logging
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from spark_sink.monitoring.logs.masked_secrets import Mask

FIELDS: Final = "fields"
"""Attribute of a log record with named values."""
_NAMED: Final = ("topic",)  # values that a log call may give by `extra=`
OURS: Final = ("azimuth", "assignors", "producer", "spark_sink")

"""Loggers of this project begin so."""


class LogFormat(enum.StrEnum):
    """The form of a log line."""

    TEXT = "text"
    JSON = "json"


class LineFormat(logging.Formatter):
    """Formats records; no line contains a secret.

    Args:
        form: text or JSON.
        mask: hides secrets.
        fields: values for each JSON line, such as the agent's name. Text has none: people read it beside its agent.
    """

    def __init__(self, form: LogFormat, mask: Mask | None = None, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.form = form
        self._mask = mask or Mask()
        self._fields = dict(fields or {})

    def value(self) -> dict[str, Any]:
        """Return this format as JSON values, for a process of its own."""
        return {"form": self.form, "secrets": sorted(self._mask.secrets), "fields": self._fields}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "LineFormat":
        """Return the format of `value`."""
        return cls(LogFormat(value.get("form", LogFormat.JSON)), Mask(value.get("secrets", ())), value.get("fields"))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break at its end."""
        return self._json(record) if self.form is LogFormat.JSON else self._text(record)

    def _json(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._mask(record.getMessage().rstrip()),
        }
        given = {**self._fields, **values_of(record)}
        line |= {name: self._clean(value) for name, value in given.items() if name not in line}
        if (trace := self._trace(record)) is not None:
            line["exception"] = self._mask(trace)
        return json.dumps(line, ensure_ascii=False)

    def _text(self, record: logging.LogRecord) -> str:
        origin = "" if is_ours(record.name) else f"{record.name}: "
        values = ", ".join(f"{name}={value}" for name, value in _own_values(record).items())
        said = f"{record.getMessage().rstrip()} ({values})" if values else record.getMessage().rstrip()
        line = f"{self.formatTime(record)} {record.levelname} {origin}{said}"
        trace = self._trace(record)
        return self._mask(line if trace is None else f"{line}\n{trace}")

    def _clean(self, value: object) -> object:
        if isinstance(value, Mapping):
            return {str(name): self._clean(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._clean(inner) for inner in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no such number
        return value if value is None or isinstance(value, bool | int | float) else self._mask(str(value))

    def _trace(self, record: logging.LogRecord) -> str | None:
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else None


def values_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the named values of a record."""
    given = {name: getattr(record, name) for name in _NAMED if getattr(record, name, None) is not None}
    return {**given, **_own_values(record)}


def _own_values(record: logging.LogRecord) -> dict[str, Any]:
    return dict(getattr(record, FIELDS, None) or {})


def is_ours(logger: str) -> bool:
    """Return whether a logger is of this project."""
    return logger.partition(".")[0] in OURS
