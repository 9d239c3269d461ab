"""Lines of librdkafka, Spark, its workers and Python on standard error."""

import json
import logging

import pytest

from spark_sink.monitoring.logs.foreign_lines import ForeignLine, JoinedLines, read_line

FAILED = "%3|1700000000.123|FAIL|azimuth.a#consumer-1| [thrd:h:1/bootstrap]: h:1/bootstrap: Connect failed: refused"


def joined(*lines: str) -> list[str]:
    """Return what the lines are joined to."""
    made = JoinedLines()
    found = [text for line in lines if (text := made.add(line)) is not None]
    last = made.take()
    return [*found, *([last] if last is not None else [])]


@pytest.mark.parametrize(
    ("text", "level", "logger", "message"),
    [
        (FAILED, logging.ERROR, "librdkafka", "FAIL: [thrd:h:1/bootstrap]: h:1/bootstrap: Connect failed: refused"),
        ("%4|1.2|CONFWARN|c| no such", logging.WARNING, "librdkafka", "CONFWARN: no such"),
        ("%5|1.2|REQTMOUT|c| timed out", logging.INFO, "librdkafka", "REQTMOUT: timed out"),
        ("%7|1.2|SEND|c| sent", logging.DEBUG, "librdkafka", "SEND: sent"),
        ("26/11/23 04:05:06 WARN Utils: Your host resolves", logging.WARNING, "spark", "Utils: Your host resolves"),
        ("26/11/23 04:05:06 INFO SparkEnv: up", logging.INFO, "spark", "SparkEnv: up"),
        ("26/11/23 04:05:06 FATAL A: b", logging.CRITICAL, "spark", "A: b"),
        ("# A fatal error has been detected", logging.WARNING, "stderr", "# A fatal error has been detected"),
        ("{not json", logging.WARNING, "stderr", "{not json"),
        ('{"level": 1}', logging.WARNING, "stderr", '{"level": 1}'),
    ],
)  # fmt: skip
def test_each_origin_has_its_logger_and_level(text: str, level: int, logger: str, message: str) -> None:
    """A line in an unknown format is a warning: it may be the last words of a process."""
    found = read_line(text)
    assert found is not None
    assert (found.level, found.logger, found.message) == (level, logger, message)


def test_the_client_of_librdkafka_is_a_field() -> None:
    """An agent has many clients, and their names say which cluster and lane they read."""
    found = read_line(FAILED)
    assert found is not None
    assert found.fields == {"client": "azimuth.a#consumer-1"}


@pytest.mark.parametrize("text", ["", "   ", 'Setting default log level to "WARN".'])
def test_greetings_and_empty_lines_are_left_out(text: str) -> None:
    """They say nothing about this process."""
    assert read_line(text) is None


def test_a_line_of_a_worker_keeps_its_fields() -> None:
    """Workers write JSON whatever the command's format is, so that the driver knows logger, level and values."""
    line = {"time": "t", "level": "warning", "logger": "azimuth.source", "message": "m", "partitions": 3}
    assert read_line(json.dumps(line)) == ForeignLine(
        level=logging.WARNING, logger="azimuth.source", message="m", fields={"partitions": 3}
    )


def test_a_stack_trace_belongs_to_its_line() -> None:
    """A trace of forty lines would be forty warnings."""
    java = ["26/11/23 04:05:06 ERROR A: failed", "java.x.Y: text", "\tat a.b(C.java:1)", "Caused by: z", "\t... 3 more"]
    assert joined(java[0], *java[2:]) == ["\n".join([java[0], *java[2:]])]


def test_a_traceback_ends_with_its_error() -> None:
    """The next line of another thread is a line of its own."""
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1', "a.b.SomeError: text", FAILED]
    assert joined("before", *lines) == ["\n".join(["before", *lines[:3]]), FAILED]
    assert joined(*lines) == ["\n".join(lines[:3]), FAILED]


def test_a_traceback_is_an_error() -> None:
    """A thread that ended with an exception is more than a warning."""
    found = read_line("Traceback (most recent call last):\n  File\nValueError: x")
    assert found is not None
    assert found.level == logging.ERROR
