"""Servers and folders with faults, and checks that wait for a busy machine."""

from collections.abc import Iterator
from functools import partial

import pytest

from spark_sink.agent import sink_checks
from spark_sink.checks import BrokerChecks, run
from spark_sink.claimed import job_checks
from spark_sink.fleet import agent_checks
from tests.signal_handlers import handlers_kept
from tests.unit.spark_sink.checks.fault_places import Places, opened


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """All servers and folders, once."""
    with opened(tmp_path_factory.mktemp("check")) as found:
        yield found


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer than a user does: on a busy machine every place may be slow, which is a finding of its own."""
    for module in (sink_checks, agent_checks, job_checks):
        monkeypatch.setattr(module, "run", partial(run, limit_s=90))
        monkeypatch.setattr(
            module, "BrokerChecks", lambda kafka, settings, _=0: BrokerChecks(kafka, settings, answer_s=60)
        )


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No other agent: librdkafka's mock cluster does not describe groups. Signal handlers as before."""
    monkeypatch.setattr(sink_checks, "same_name", lambda _: {})
    with handlers_kept():
        yield
