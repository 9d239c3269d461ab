"""Elections of evaluators, on librdkafka's mock cluster."""

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignors.errors import PublishError
from assignors.scaling import EvaluatorElection, evaluator_election
from producer.testing import MockCluster
from tests.waiting import wait_until

pytestmark = pytest.mark.long

TOPIC = "azimuth.workers"


@pytest.fixture
def kafka() -> Iterator[dict[str, str]]:
    """A cluster with the workers topic."""
    with MockCluster() as cluster:
        cluster.create(TOPIC, [1])
        cluster.wait_for_members(100)
        yield {"bootstrap.servers": cluster.bootstrap_servers}


def test_one_evaluator_of_a_group_leads_and_another_takes_over(kafka: dict[str, str]) -> None:
    """Two with `--apply` would publish numbers in turn; evaluators of other groups are no rivals."""
    with EvaluatorElection(kafka, TOPIC, ["a", "b"]) as first:
        first.wait()
        assert first.leads("a")
        assert first.leads("b")
        with EvaluatorElection(kafka, TOPIC, ["a"]) as second, EvaluatorElection(kafka, TOPIC, ["c"]) as other:
            second.wait()
            other.wait()
            assert other.leads("c")
            wait_until(lambda: first.leads("a") != second.leads("a"), what="one leader")
            first.close()
            wait_until(lambda: second.leads("a"), what="the takeover")
            assert not first.leads("a")


def test_an_election_that_is_not_decided_is_an_error() -> None:
    """No broker answers: a sentence, and not a dry run that looks like the real thing."""
    with (
        EvaluatorElection({"bootstrap.servers": "127.0.0.1:1"}, TOPIC, ["a"]) as election,
        pytest.raises(PublishError, match="is not joined"),
    ):
        election.wait(0.3)


def test_an_election_goes_on_after_an_error_of_its_client(
    kafka: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread would have ended, and no evaluator of this process had published again, without a word."""
    with EvaluatorElection(kafka, TOPIC, ["a", "b"]) as election:
        election.wait()
        candidate = election._candidates["a"]
        whole, failed = candidate._consumer, threading.Event()

        class Failing:
            def poll(self, timeout_s: float) -> None:
                time.sleep(timeout_s)
                failed.set()
                raise KafkaException(KafkaError(KafkaError._STATE))

        monkeypatch.setattr(evaluator_election, "_SESSION_S", 1.0)
        monkeypatch.setattr(candidate, "_consumer", Failing())
        wait_until(failed.is_set, what="the error")
        wait_until(lambda: not election.leads("a"), what="the end of the lead")
        assert election.leads("b")
        monkeypatch.setattr(candidate, "_consumer", whole)
        wait_until(lambda: election.leads("a"), what="the lead again")
