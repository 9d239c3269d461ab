"""The signals that end an agent."""

import os
import signal
from collections.abc import Iterator

import pytest

from spark_sink.agent.stop_signal import StopSignal, stop_on_signals
from tests.signal_handlers import handlers_kept


@pytest.fixture
def stop() -> Iterator[StopSignal]:
    """The signals of a test, and afterwards those of pytest."""
    with handlers_kept():
        yield StopSignal()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_while_spark_starts_the_first_signal_ends_at_once_and_no_other_disturbs_the_end(
    stop: StopSignal, number: signal.Signals
) -> None:
    """A service manager may repeat its signal, and so may a user."""
    with pytest.raises(SystemExit) as ended:
        os.kill(os.getpid(), number)
    assert ended.value.code == 0
    os.kill(os.getpid(), number)
    assert stop.asked


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_a_query_is_only_recorded(stop: StopSignal, number: signal.Signals) -> None:
    """An exception in a call to the JVM would leave its connection waiting for the answer."""
    stop.wait_for_the_query()
    assert not stop.asked
    os.kill(os.getpid(), number)
    assert stop.asked


def test_a_process_without_spark_gets_an_event_and_the_name_of_the_first_signal() -> None:
    """A command that says nothing needs no note."""
    with handlers_kept():
        silent = stop_on_signals()
        signal.raise_signal(signal.SIGTERM)
        assert silent.is_set()

        names: list[str] = []
        stop = stop_on_signals(names.append)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
            assert stop.is_set()
    assert names == ["SIGINT"]
