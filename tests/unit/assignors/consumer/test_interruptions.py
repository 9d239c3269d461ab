"""What an interruption cannot leave half done, and calls in other threads whose caller is interrupted."""

import itertools
import sys
import threading
import time
from typing import Any, Final

import pytest

from assignors.consumer import background_calls, commit_queue, leaving
from assignors.consumer.background_calls import BackgroundCalls, call_apart
from assignors.consumer.commit_queue import CommitQueue, CommitTimeout
from assignors.consumer.consumer_errors import ConsumerError
from assignors.consumer.interruptions import Once, PendingSteps, at_once
from assignors.consumer.leaving import Leaving
from tests.unit.assignors.consumer.interruption_points import Interrupter

SPARED: Final = frozenset({__file__})
# What is dropped at such a point has its end there, and the interpreter only reports what is raised there.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_calls_at_once_are_all_made_or_none() -> None:
    """A partition would be removed from librdkafka's client, and not be added again."""
    for number in itertools.count():
        made: list[int] = []
        interrupter = Interrupter(number, SPARED)
        interrupter.run(lambda made=made: at_once((made.append, 1), (made.append, 2)))  # type: ignore[misc]  # a default
        assert made in ([], [1, 2])
        if not interrupter.raised_in:
            break
    assert number > 1


def test_a_call_that_is_made_once_is_made_in_spite_of_an_interruption() -> None:
    """A callback of the program is neither skipped nor repeated."""
    for number in itertools.count():
        once, made = Once(), list[int]()
        interrupter = Interrupter(number, SPARED)
        interrupter.run(lambda once=once, made=made: once.call(made.append, 1))  # type: ignore[misc]  # defaults
        assert once.made == (made == [1])
        once.call(made.append, 1)
        assert made == [1]
        if not interrupter.raised_in:
            break
    assert number > 1


def test_a_call_that_raises_stop_iteration_is_an_error() -> None:
    """`next` of a callback raises it; the loop that makes the call would take it for its own end."""
    once = Once()
    with pytest.raises(RuntimeError, match="StopIteration"):
        once.call(next, iter(()))
    assert once.made
    once.call(next, iter(()))  # no second call


def test_steps_are_made_in_order_and_repeated_after_an_interruption() -> None:
    """None is skipped, and none made before an earlier one has returned."""
    for number in itertools.count():
        made: list[int] = []
        steps = PendingSteps([lambda one=one, made=made: made.append(one) for one in range(3)])  # type: ignore[misc]  # defaults
        interrupter = Interrupter(number, SPARED)
        interrupter.run(steps.run)
        steps.run()
        assert not steps
        assert sorted(set(made)) == [0, 1, 2]
        assert made == sorted(made)
        if not interrupter.raised_in:
            break
    assert number > 5


def test_a_step_that_fails_by_itself_does_not_hold_the_rest_for_ever() -> None:
    """It is tried twice, and its error comes at the end."""
    made: list[str] = []

    def fail() -> None:
        made.append("fails")
        raise LookupError

    steps = PendingSteps([fail, lambda: made.append("rest")])
    with pytest.raises(LookupError):
        steps.finish()
    assert made == ["fails", "fails", "rest"]
    assert not steps


def test_several_interruptions_skip_no_step() -> None:
    """A step that was dropped after the second one left assigned partitions unread."""
    made: list[int] = []

    def begin() -> None:
        made.append(len(made))
        if len(made) < 5:
            raise KeyboardInterrupt

    steps = PendingSteps([begin])
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            steps.run()
    steps.run()
    assert made == [0, 1, 2, 3, 4]
    assert not steps


def test_a_step_may_make_the_rest() -> None:
    """As close() does in on_commit or stats_cb, which another close() calls."""
    made: list[str] = []

    def first() -> None:
        made.append("first")
        if len(made) == 1:
            steps.finish()

    steps = PendingSteps([first, lambda: made.append("rest")])
    steps.finish()
    assert made == ["first", "first", "rest"]
    assert not steps


def test_the_result_of_an_interrupted_call_is_used_or_undone() -> None:
    """A member that has started must not stay in its group without a program."""
    for number in itertools.count():
        undone: list[int] = []
        ended = threading.Event()
        found: list[int] = []

        def undo(one: int, undone: list[int] = undone, ended: threading.Event = ended) -> None:
            undone.append(one)
            ended.set()

        interrupter = Interrupter(number, SPARED)
        called: list[bool] = []
        interrupter.run(
            lambda found=found, called=called, undo=undo: found.extend(  # type: ignore[misc]  # defaults
                map(lambda *_: call_apart(lambda: called.append(True) or 7, undo), (1,))
            )
        )
        if not interrupter.raised_in:
            break
        if called:
            assert found or ended.wait(10)
        assert found + undone in ([7], []) if not called else found + undone == [7]
    assert number > 10


def test_an_interruption_leaves_no_lock_of_the_thread_of_calls_locked() -> None:
    """Else each later commit, and close(), would wait for ever."""
    for number in itertools.count():
        calls, made = BackgroundCalls("calls"), list[int]()
        interrupter = Interrupter(number, SPARED)
        interrupter.run(lambda calls=calls, made=made: calls.put(lambda: made.append(1)))  # type: ignore[misc]  # defaults
        calls.put(lambda made=made: made.append(2))  # type: ignore[misc]  # defaults
        assert calls.end(10)
        assert made in ([1, 2], [2])
        if not interrupter.raised_in:
            break
    assert number > 5


def test_a_call_after_the_end_is_refused() -> None:
    """It would never be made, and its caller would wait for ever."""
    calls = BackgroundCalls("calls")
    calls.put(lambda: None)
    assert calls.end(10)
    with pytest.raises(RuntimeError, match="no calls are made after the end"):
        calls.put(lambda: None)


def test_the_end_of_the_program_waits_for_calls_and_refuses_none() -> None:
    """A function that the program registered before it imported this package closes its consumer after that."""
    calls, made = BackgroundCalls("calls"), list[int]()

    def slow() -> None:
        time.sleep(0.2)
        made.append(1)

    calls.put(slow)
    background_calls._finish_calls()
    assert made == [1]
    calls.put(lambda: made.append(2))
    assert calls.end(10)
    assert made == [1, 2]
    background_calls._finish_calls()


def test_no_end_comes_between_a_call_and_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call would never be made: a commit in one thread would wait for ever if another one closes the consumer."""
    calls, made = BackgroundCalls("calls"), list[int]()
    calls.put(lambda: None)
    ending = threading.Thread(target=calls.end, args=(10,))

    def late(*requests: tuple[Any, ...]) -> None:
        ending.start()
        time.sleep(0.2)
        at_once(*requests)

    monkeypatch.setattr(background_calls, "at_once", late)
    calls.put(lambda: made.append(1))
    ending.join()
    assert made == [1]


def test_no_call_waits_for_a_thread_while_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Daemon threads have ended by then: close() in `__del__` of a global object waited for them for 90 s."""
    calls = BackgroundCalls("calls")
    calls.put(lambda: None)
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    for call in (lambda: call_apart(int), lambda: calls.put(int), lambda: Leaving(Stuck()).finish(bool)):  # type: ignore[arg-type]  # no call is made
        with pytest.raises(RuntimeError, match="the interpreter ends"):
            call()
    calls.end(60)


def test_an_interruption_of_a_commit_leaves_the_next_ones_answered() -> None:
    """Also if it comes while the program waits for the answer."""

    class Member:
        def commit(self, *_: object) -> None:
            """Accept it."""

    member: Any = Member()
    for number in itertools.count():
        commits = CommitQueue(None, CommitTimeout())
        interrupter = Interrupter(number, SPARED)
        interrupter.run(lambda commits=commits: commits.commit(member, {("t", 0): 1}))  # type: ignore[misc]  # a default
        commits.commit(member, {("t", 0): 2})
        commits.wait_until_answered()
        assert not commits.uncommitted({("t", 0): 2})
        commits.close()
        if not interrupter.raised_in:
            break
    assert number > 10


class Stuck:
    """A member whose calls do not return, because a lock of a library stays locked."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def close(self) -> None:
        """Wait."""
        self.go.wait(60)

    def commit(self, *_: object) -> None:
        """Wait."""
        self.go.wait(60)


def test_an_error_of_the_end_of_a_member_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The group may still wait for the member, so the program's log has to say why."""

    class Broken:
        """A member whose library fails."""

        def close(self) -> None:
            """Fail."""
            raise OSError("no leave")

    member: Any = Broken()
    Leaving(member).finish(lambda: False)
    assert "no leave" in caplog.text


def test_a_member_that_does_not_end_is_left_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption inside a library can leave its locks locked: close() ends all the same."""
    monkeypatch.setattr(leaving, "_LONGEST_S", 0.05)
    member: Any = Stuck()
    one = Leaving(member)
    with pytest.raises(ConsumerError, match="has not ended"):
        one.finish(lambda: False)
    assert one.ended
    member.go.set()


def test_a_long_callback_that_raises_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is the program's: the partitions of the next revocation are released, too."""
    monkeypatch.setattr(leaving, "_LONGEST_S", 0.3)
    member: Any = Stuck()
    handled: list[int] = []

    def handle() -> bool:
        handled.append(len(handled))
        if len(handled) == 1:
            threading.Event().wait(0.4)
            raise LookupError
        member.go.set()
        return True

    with pytest.raises(LookupError):
        Leaving(member).finish(handle)
    assert len(handled) > 1


def test_a_commit_that_does_not_end_is_left_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, of the thread that commits."""
    monkeypatch.setattr(commit_queue, "_LONGER_S", 0.05)
    member: Any = Stuck()
    commits = CommitQueue(None, lambda: 0.0)
    commits.commit_later(member, {("t", 0): 1})
    with pytest.raises(ConsumerError, match="a commit has not ended"):
        commits.close()
    member.go.set()
