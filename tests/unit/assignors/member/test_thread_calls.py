"""Calls that one thread makes for others: results, errors, and the end of that thread."""

import threading
from collections.abc import Iterator

import pytest

from assignors.errors import MembershipError
from assignors.member.thread_calls import ThreadCalls


@pytest.fixture
def calls() -> Iterator[ThreadCalls]:
    """Calls that a thread serves until the end of the test."""
    made = ThreadCalls()
    ended = threading.Event()

    def serve() -> None:
        while not ended.wait(0.001):
            made.serve()
        made.end()

    thread = threading.Thread(target=serve, name="serves")
    thread.start()
    yield made
    ended.set()
    thread.join()


def test_the_serving_thread_makes_the_call_and_its_result_comes_back(calls: ThreadCalls) -> None:
    """Only that thread may use the client."""
    assert calls.ask(lambda: threading.current_thread().name, 5) == "serves"


def test_an_error_is_raised_in_the_thread_that_asked(calls: ThreadCalls) -> None:
    """The serving thread goes on."""
    with pytest.raises(ZeroDivisionError):
        calls.ask(lambda: 1 // 0, 5)
    assert calls.ask(lambda: 5, 5) == 5


def test_a_call_that_is_not_served_in_time_is_an_error() -> None:
    """The thread waits for a broker."""
    with pytest.raises(MembershipError, match="has not answered"):
        ThreadCalls().ask(lambda: 5, 0.01)


def test_a_call_that_was_given_up_is_not_made_later() -> None:
    """A commit that was reported as failed would overwrite the next owner's."""
    calls = ThreadCalls()
    made: list[int] = []
    with pytest.raises(MembershipError):
        calls.ask(lambda: made.append(1), 0.01)
    calls.serve()
    assert made == []


def test_calls_are_served_while_a_callback_runs_in_another_thread() -> None:
    """A callback of a revocation commits, and the serving thread waits for the callback."""
    calls = ThreadCalls()
    found: list[int] = []

    def callback(done: object) -> None:
        assert callable(done)
        found.append(calls.ask(lambda: 5, 5))
        done()

    calls.serve_until(lambda done: threading.Thread(target=callback, args=(done,)).start())
    assert found == [5]


def test_calls_after_the_end_are_made_at_once() -> None:
    """They find a closed client, and do not wait for a thread that is gone."""
    calls = ThreadCalls()
    calls.end()
    assert calls.ask(lambda: 5, 0.01) == 5
