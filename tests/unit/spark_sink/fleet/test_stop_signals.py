"""The signals that end an agent or a job of claims."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from spark_sink.claimed import job_process
from spark_sink.fleet import agent_process
from tests.signal_handlers import handlers_kept

SETTINGS: Any = SimpleNamespace(
    metrics_port=None,
    ops=None,
    once=False,
    max_runtime_s=None,
    agent="one",
    kafka={"bootstrap.servers": "localhost:1"},
    database="sqlite:///c.db",
    owner="one",
    name="g",
    table="t",
)


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    """Restore the handlers that a process sets."""
    with handlers_kept():
        yield


def _signalled(stop: threading.Event) -> None:
    signal.raise_signal(signal.SIGTERM)
    assert stop.wait(10)  # a job runs in a thread, and the main thread hears its signals
    signal.raise_signal(signal.SIGTERM)


def _run_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_process, "build", lambda *_: None)
    monkeypatch.setattr(agent_process, "_ingest", lambda _agent, _settings, stop: _signalled(stop))
    agent_process.run(SETTINGS)


def _run_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        job_process, "build", lambda *_: SimpleNamespace(run=lambda stop, *_: _signalled(stop), holds=False)
    )
    job_process.run(SETTINGS)


@pytest.mark.parametrize("run", [_run_agent, _run_job])
def test_a_signal_that_comes_twice_is_logged_once(
    run: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`timeout` sends it to the process and to the process group."""
    with caplog.at_level(logging.INFO):
        run(monkeypatch)
    assert sum("stopping (SIGTERM)" in record.getMessage() for record in caplog.records) == 1
