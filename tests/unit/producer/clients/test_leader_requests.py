"""Requests for leaders while no broker is connected."""

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from producer import MetadataError
from producer.clients import leader_requests
from producer.clients.leader_requests import LeaderRequests
from tests.waiting import wait_until


class Failing:
    """A client whose requests fail at once; notes the time that each one was given."""

    def __init__(self, *codes: int) -> None:
        self.codes = codes
        self.allowed_s: list[float] = []

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ARG002 - as Lister's
        """Fail."""
        self.allowed_s.append(timeout)
        raise KafkaException(KafkaError(self.codes[min(len(self.allowed_s), len(self.codes)) - 1]))


def test_it_asks_seldom_for_a_connection_and_long_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting request makes librdkafka connect 20 times a second; `close` ends a pause, where it waited for 10 s."""
    requests = LeaderRequests({})
    slow = Failing(KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
    with pytest.raises(MetadataError):
        requests.ask(slow, "t", 10.0)
    assert slow.allowed_s[:2] == [0.05, 0.05]
    assert 8.0 < slow.allowed_s[2] <= 9.1
    away = Failing(KafkaError._TRANSPORT)
    with pytest.raises(MetadataError):
        requests.ask(away, "t", 2.0)
    asked = len(away.allowed_s)
    assert asked <= 4
    assert away.allowed_s[:-1] == [0.05] * (asked - 1)
    monkeypatch.setattr(leader_requests, "_PAUSE_S", 60.0)
    asking = threading.Thread(target=requests.ask, args=(away, "t", 120.0))
    asking.start()
    wait_until(lambda: len(away.allowed_s) == asked + 1)
    requests.close()
    asking.join(10)
    assert not asking.is_alive()
    assert len(away.allowed_s) == asked + 1
