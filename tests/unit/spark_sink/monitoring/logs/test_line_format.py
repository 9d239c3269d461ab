"""A log record as text and as JSON."""

import json
import logging
import sys
from typing import Any

from spark_sink.monitoring.logs.line_format import LineFormat, LogFormat
from spark_sink.monitoring.logs.masked_secrets import Mask


def record(message: str, *args: object, name: str = "azimuth.sink", **extra: object) -> logging.LogRecord:
    """Return a record of a warning."""
    made = logging.LogRecord(name, logging.WARNING, "", 0, message, args, None)
    made.created = 1_700_000_000.25
    made.__dict__.update(extra)
    return made


def as_json(one: logging.LogRecord, **fields: Any) -> dict[str, Any]:
    """Return the JSON line of a record."""
    line = LineFormat(LogFormat.JSON, Mask(["hunter22"]), fields).format(one)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_json_line_has_time_level_logger_message_agent_and_topic() -> None:
    """Log collectors select by these names."""
    assert as_json(record("%s is late", "t", topic="t"), agent="a1") == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "azimuth.sink",
        "message": "t is late",
        "agent": "a1",
        "topic": "t",
    }


def test_named_values_are_fields_and_cannot_replace_the_fixed_ones() -> None:
    """An event may have a value that is called level."""
    line = as_json(record("m", fields={"level": 7, "partitions": 3, "topics": {"a"}, "agent": "b"}), agent="a")
    assert (line["level"], line["partitions"], line["topics"], line["agent"]) == ("warning", 3, ["a"], "b")


def test_no_secret_is_in_any_part_of_a_line() -> None:
    """Messages, values and traces may repeat what a client was given."""
    try:
        int("hunter22")
    except ValueError:
        failed = record("%s", "hunter22", exc_info=sys.exc_info(), fields={"config": {"a": ["hunter22"]}})
    for form in LogFormat:
        line = LineFormat(form, Mask(["hunter22"])).format(failed)
        assert "hunter22" not in line
        assert "ValueError: invalid literal for int() with base 10: '***'" in line


def test_a_text_line_names_the_origin_of_foreign_lines_only() -> None:
    """A person knows whose log this is."""
    form = LineFormat(LogFormat.TEXT, fields={"agent": "a1"})
    assert form.format(record("m\n")).endswith(" WARNING m")
    assert form.format(record("m", name="librdkafka")).endswith(" WARNING librdkafka: m")
    assert form.format(record("m", fields={"a": 1, "b": "c"})).endswith(" WARNING m (a=1, b=c)")
