"""Reports of an agent go on after an error, which is logged once."""

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from spark_sink.fleet import periodic_reports
from spark_sink.fleet.periodic_reports import start_reports
from tests.waiting import wait_until


def status() -> dict[str, Any]:
    """A status with the keys that the log's lines need."""
    return {"topics": {}, "rows": 1, "problems": [], "standing": "member", "lag": {}, "at": 1.0}


@pytest.mark.parametrize("error", [ValueError("a set changed"), OSError("no space left")], ids=["unexpected", "disk"])
def test_reports_go_on_after_an_error(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An agent whose report threads ended would look alive with the numbers of long ago."""
    monkeypatch.setattr(periodic_reports, "_STATUS_S", 0.01)
    monkeypatch.setattr(periodic_reports, "_PROGRESS_S", 0.01)
    failures = [error] * 10

    def failing() -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return status()

    stop, file = threading.Event(), tmp_path / "status.json"
    with caplog.at_level(logging.INFO):
        threads = start_reports(failing, file, stop)
        wait_until(lambda: file.exists() and "1 rows written" in caplog.text, what="the reports")
        stop.set()
        for thread in threads:
            thread.join()
    assert json.loads(file.read_text()) == status()
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert 1 <= len(warnings) <= len(threads)  # once a thread
    assert all((one.exc_info is None) == isinstance(error, OSError) for one in warnings)
