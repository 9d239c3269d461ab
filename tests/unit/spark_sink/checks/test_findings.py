"""Questions with a time limit, and their answers in words."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._acl import AclOperation

from producer.testing import MockCluster
from spark_sink.checks import BrokerChecks, Check, Finding, State, run
from spark_sink.errors import JoinError, LaterError

HOST = "the host"


def raising(error: Exception) -> Check:
    """A question whose answer is this error."""

    def ask() -> str:
        raise error

    return Check(subject="asked", place=HOST, ask=ask)


def test_a_question_without_an_answer_ends_at_the_limit() -> None:
    """A place that drops packets must not stop the command; the question after it is not blamed."""
    never = threading.Event()
    silent = Check(subject="silent", place=HOST, ask=lambda: str(never.wait()))
    after = Check(subject="after", place=HOST, ask=lambda: "fine", after="silent")
    quick = Check(subject="quick", place=HOST, ask=lambda: "fine")
    began = time.monotonic()
    found = run([silent, after, quick], 0.2)
    assert time.monotonic() - began < 3
    never.set()
    assert [one.state for one in found] == [State.LATER, State.SKIPPED, State.OK]
    assert found[0].text == "the host: no answer in 0.2 s: it is slow, or cannot be reached; check its address"


@pytest.mark.parametrize(
    ("error", "state", "text"),
    [
        (JoinError("refused"), State.FAULT, "refused"),
        (LaterError("not there yet"), State.LATER, "not there yet"),
        (ValueError("strange\n  thing"), State.FAULT, "the host: ValueError: strange thing"),
    ],
    ids=["ours", "later", "a library's"],
)
def test_an_error_is_one_line(error: Exception, state: State, text: str) -> None:
    """An unexpected error of a library names at least the place."""
    (found,) = run([raising(error)], 5)
    assert (found.state, found.text) == (state, text)


def test_a_question_waits_for_the_one_before_it() -> None:
    """Twenty sentences about topics of brokers that are away would hide the one sentence that counts."""
    after = Check(subject="topics", place=HOST, ask=lambda: "fine", after="asked")
    assert [one.state for one in run([raising(JoinError("no")), after], 5)] == [State.FAULT, State.SKIPPED]


@pytest.mark.parametrize(("seconds", "slow"), [(0.2, False), (2.3, True)])
def test_a_slow_answer_is_called_slow(seconds: float, *, slow: bool) -> None:
    """It is no fault, but the cause of the next one."""
    line = Finding(subject="brokers", state=State.OK, text="fine", seconds=seconds).line()
    assert line.endswith("(slow: 2.3 s)") == slow


def test_a_slow_broker_is_slow_not_away() -> None:
    """Short requests that are repeated would never be answered."""
    with MockCluster([None]) as mock:
        mock.create("t", [1])
        mock.delay(1, 600)
        brokers = BrokerChecks({"bootstrap.servers": mock.bootstrap_servers}, "x", 20)
        (found,) = run([Check(subject="brokers", place=HOST, ask=brokers.reached)], 30)
        assert found.state is State.OK, found
        assert "slow" in found.line()


class Groups:
    """An admin client that answers questions for a group with this."""

    def __init__(self, answer: Sequence[AclOperation] | Exception | None) -> None:
        self._answer = answer

    def describe_consumer_groups(self, groups: Sequence[str], **_: object) -> dict[str, Future[Any]]:
        """Of each group."""
        answer: Future[Any] = Future()
        if isinstance(self._answer, Exception):
            answer.set_exception(self._answer)
        else:
            answer.set_result(type("Group", (), {"authorized_operations": self._answer, "members": ()}))
        return dict.fromkeys(groups, answer)


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        pytest.param(None, False, id="brokers without rights"),
        pytest.param([AclOperation.READ, AclOperation.DESCRIBE], False, id="may read"),
        pytest.param([AclOperation.DESCRIBE], True, id="may only look"),
        pytest.param(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)), True, id="may not look"),
        pytest.param(KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)), False, id="new cluster"),
    ],
)
def test_the_right_to_a_group_is_checked_without_joining_it(
    answer: Sequence[AclOperation] | Exception | None, *, refused: bool
) -> None:
    """A check that joins would start a rebalance of the agents that run."""
    brokers = BrokerChecks({"bootstrap.servers": "b:1"}, "x")
    brokers._admin = Groups(answer)
    if not refused:
        assert brokers.group("g").startswith("group 'g': ")
        return
    with pytest.raises(JoinError, match="group 'g' on b:1: this user may not join it: allow it READ there"):
        brokers.group("g")
