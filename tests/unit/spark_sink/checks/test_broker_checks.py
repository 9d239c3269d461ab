"""The questions to brokers, where no answer comes."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from spark_sink.checks.broker_checks import ANSWER_S, BrokerChecks


class NoCoordinator:
    """An admin client of a new cluster, whose coordinator is not there yet."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def describe_consumer_groups(self, groups: list[str], *, request_timeout: float, **_: object) -> dict[str, Any]:
        """Take the question."""
        self.waits.append(request_timeout)
        return {groups[0]: self}

    def result(self, timeout_s: float) -> None:
        """Wait in vain."""
        self.waits.append(timeout_s)
        raise TimeoutError


@pytest.mark.parametrize("answer_s", [1.0, ANSWER_S, 15.0])
def test_a_start_does_not_wait_long_for_a_coordinator_that_is_not_there(answer_s: float) -> None:
    """It is no fault, so nothing is gained by the time that other answers may take."""
    checks, admin = BrokerChecks({"bootstrap.servers": "b:1"}, "--bootstrap-servers", answer_s), NoCoordinator()
    checks._admin = admin
    assert "does not answer yet" in checks.group("g")
    assert admin.waits == [min(answer_s, ANSWER_S)] * 2


class NoCoordinatorYet(NoCoordinator):
    """An admin client whose broker answers that there is no coordinator, without a text."""

    def result(self, timeout_s: float) -> None:  # noqa: ARG002 -- of the question
        """Return the error of the broker."""
        raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE, ""))


def test_a_coordinator_that_is_not_there_is_named() -> None:
    """The error has no text of its own: the sentence ended with `(ConsumerGroupDescribe: )`."""
    checks = BrokerChecks({"bootstrap.servers": "b:1"}, "--bootstrap-servers")
    checks._admin = NoCoordinatorYet()
    assert checks.group("g") == "group 'g': its coordinator does not answer yet, as on a new cluster"
