"""The end of a demo after a signal."""

import signal

import pytest

from spark_sink.demo.run import _ended_by_signals


def test_an_interruption_that_the_client_lost_is_one_all_the_same() -> None:
    """confluent-kafka converts a signal handler's exception during a producer's callback into a SystemError."""

    def lose() -> None:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise SystemError("returned NULL without setting an exception")

    with pytest.raises(KeyboardInterrupt), _ended_by_signals():
        lose()


def test_a_system_error_that_nobody_asked_for_stays_one() -> None:
    """It is a defect, and its traceback is wanted."""
    with pytest.raises(SystemError, match="a defect"), _ended_by_signals():
        raise SystemError("a defect")
