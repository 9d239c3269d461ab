"""The log of a process, with what others write to its standard error."""

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

from spark_sink.monitoring.logs import process_log as process_log_module
from spark_sink.monitoring.logs.line_format import LineFormat, LogFormat
from spark_sink.monitoring.logs.process_log import process_log
from tests.waiting import wait_until

BLOCK = """
import logging, os, subprocess, sys, threading, warnings
import structlog
from spark_sink.monitoring.logs.line_format import LineFormat, LogFormat
from spark_sink.monitoring.logs.masked_secrets import Mask
from spark_sink.monitoring.logs.process_log import WORKERS, log_as_worker, process_log

with process_log(LineFormat(LogFormat("{form}"), Mask(["hunter22"]), {{"agent": "a1"}})):
    logging.getLogger("azimuth.sink").info("own")
    structlog.get_logger("azimuth.source").warning("event", partitions=3)
    logging.getLogger("py4j").info("left out")
{body}
print("after", file=sys.stderr)
"""


def lines(body: str, form: str = "json") -> list[str]:
    """Run a process that logs, and return the lines of its standard error."""
    code = BLOCK.format(form=form, body="".join(f"    {line}\n" for line in body.splitlines()))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *found, last = done.stderr.splitlines()
    assert last == "after"  # standard error is as before
    return found


def parsed(body: str) -> list[tuple[str, str, str]]:
    """Return level, logger and message of each line after the first two."""
    found: list[dict[str, Any]] = [json.loads(line) for line in lines(body)]
    assert all(one["agent"] == "a1" for one in found)
    assert [one["message"] for one in found[:2]] == ["own", "event"]
    assert found[1]["partitions"] == 3
    return [(one["level"], one["logger"], one["message"]) for one in found[2:]]


def test_lines_of_a_child_process_get_the_format() -> None:
    """Spark's JVM writes to the standard error of its driver."""
    says = "echo '26/11/23 04:05:06 WARN Utils: hunter22' >&2; echo '26/11/23 04:05:06 INFO Utils: x' >&2"
    body = f'subprocess.run(["sh", "-c", "{says}"])'
    assert parsed(body) == [("warning", "spark", "Utils: ***")]


def test_lines_of_librdkafka_get_the_format() -> None:
    """Its threads write to the descriptor, not to Python's stream."""
    body = """from confluent_kafka import Producer
heard = threading.Event()
producer = Producer({"bootstrap.servers": "localhost:1", "error_cb": lambda error: heard.set()})
while not heard.is_set(): producer.poll(0.1)
del producer"""
    found = parsed(body)
    assert found
    assert {(level, logger) for level, logger, _ in found} == {("error", "librdkafka")}
    assert "Connection refused" in found[0][2]


def test_a_thread_that_fails_is_one_line() -> None:
    """A traceback of twenty lines would be twenty warnings."""
    body = "thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()"
    ((level, logger, message),) = parsed(body)
    assert (level, logger) == ("error", "stderr")
    assert message.endswith("ZeroDivisionError: division by zero")


def test_a_warning_is_a_record() -> None:
    """Libraries warn once and late, in the middle of other lines."""
    ((level, logger, message),) = parsed('warnings.warn("old", stacklevel=1)')
    assert (level, logger) == ("warning", "py.warnings")
    assert "old" in message


WORKER = (
    "from spark_sink.monitoring.logs.process_log import log_as_worker; import structlog; log_as_worker(); "
    "structlog.get_logger('azimuth.source').info('from a worker', partitions=5)"
)


def test_a_worker_of_spark_logs_through_its_driver() -> None:
    """A worker is a process of its own, whose structlog would print another format."""
    found = parsed(f'subprocess.run([sys.executable, "-c", "{WORKER}"])')
    assert found == [("info", "azimuth.source", "from a worker")]


def test_a_worker_of_spark_logs_text_as_its_driver_does() -> None:
    """Its lines stand between those of the driver."""
    *_, line = lines(f'subprocess.run([sys.executable, "-c", "{WORKER}"])', "text")
    assert line.endswith(" INFO from a worker (partitions=5)")


def test_a_crash_leaves_its_last_words() -> None:
    """An assertion of librdkafka is written just before it ends the process."""
    code = BLOCK.format(form="json", body="    os.write(2, b'Assertion failed\\n'); os.abort()\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGABRT
    assert json.loads(done.stderr.splitlines()[-1])["message"] == "Assertion failed"


def test_a_library_may_write_much_while_it_holds_the_lock_of_the_interpreter() -> None:
    """Librdkafka does: if a thread of the process read the pipe, both would wait for each other."""
    eight_pipes = "(b'y' * 999 + b'\\n') * 500"
    code = f"import ctypes\nlines = {eight_pipes}\nctypes.PyDLL(None).write(2, lines, len(lines))"
    found = parsed(f"{code}\nos.write(2, b'end\\n')")
    assert len(found) == 501
    assert found[-1] == ("warning", "stderr", "end")


def test_a_full_disk_stops_no_process() -> None:
    """Lines that cannot be written are dropped; a report of that could not be written either."""
    body = "    for _ in range(1000): logging.getLogger('azimuth').info('x' * 999); os.write(2, b'y' * 999 + b'\\n')\n"
    code = BLOCK.format(form="json", body=body).partition("print(")[0]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stderr=full, check=False, timeout=60)
    assert done.returncode in {0, 120}  # 120: Python could not flush its own standard error


def test_a_strange_line_stops_no_line_after_it() -> None:
    """It looks like a line of this project, and is of another program."""
    strange = '{"level": "error", "logger": null, "message": "x"}'
    found = parsed(f"os.write(2, {strange.encode()!r} + b'\\nnext\\n')")
    assert [message for _, _, message in found] == [strange, "next"]


def test_the_end_does_not_wait_for_a_child_process(tmp_path: Path) -> None:
    """Spark's JVM ends after its driver, and keeps the pipe until then: each agent ended five seconds later."""
    body = """child = subprocess.Popen([sys.executable, "-c", "input(); import sys; print('late', file=sys.stderr)"],
                         stdin=subprocess.PIPE)
logging.getLogger("azimuth").info("last " + "x" * 50_000)
os.write(2, b"a part of a line")
import time; began = time.monotonic()"""
    code = BLOCK.format(form="json", body="".join(f"    {line}\n" for line in body.splitlines()))
    code += "print(time.monotonic() - began, file=sys.stderr, flush=True)\nchild.communicate(b'\\n')\n"
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", code], stderr=log, check=True)

    def said() -> list[str]:
        return (tmp_path / "log").read_text().splitlines()

    wait_until(lambda: len(said()) == 7, 30, lambda: str(said()))
    *ours, last, part, after, seconds, late = said()
    assert [json.loads(one)["message"] for one in ours] == ["own", "event"]
    assert json.loads(last)["message"].startswith("last x")
    assert json.loads(part)["message"] == "a part of a line"
    assert after == "after"
    assert float(seconds) < process_log_module._DRAIN_S
    assert json.loads(late)["message"] == "late"  # it still gets the format


def test_text_is_one_line_each_with_values_behind() -> None:
    """The default is for people."""
    own, event = lines("pass", "text")
    assert own.endswith(" INFO own")
    assert event.endswith(" WARNING event (partitions=3)")


def test_the_block_restores_what_it_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """A test, or a notebook, has a log of its own."""
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    with process_log(LineFormat(LogFormat.JSON)):
        structlog.get_logger("azimuth.source").info("inside")
        assert root.handlers != before
    assert root.handlers == before
    assert not structlog.is_configured()
    assert json.loads(capsys.readouterr().err)["message"] == "inside"
