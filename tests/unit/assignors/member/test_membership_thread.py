"""How a membership ends, driven against a coordinator that is not kafka-python's."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import FencedInstanceIdError, KafkaConnectionError
from kafka.future import Future

from assignors.member import membership_thread as subject
from assignors.member.ownership import OwnershipCell
from assignors.member.rebalance_listener import RebalanceListener
from tests.waiting import wait_until


class Coordinator:
    """One that waits for the answer to its join: `polls` polls long, or for ever."""

    group_id = "g"
    coordinator_id = 1
    config = {"max_poll_interval_ms": 300_000}  # noqa: RUF012 -- read only
    _generation = SimpleNamespace(is_lost=lambda: False)
    _join_task = None
    rejoining = False
    _net = SimpleNamespace(run=lambda *_: None)
    _subscription = SimpleNamespace(subscription=None)
    _manager = SimpleNamespace(wait_for=None)
    _cluster = SimpleNamespace(
        config={"retry_backoff_ms": 100},
        request_update=lambda: None,
        topics=lambda **_: set(),
        unauthorized_topics=set[str](),
        _last_successful_refresh_ms=0,
    )

    def __init__(self, polls: int | None) -> None:
        self._left = polls
        self.joining = threading.Event()
        self.hold = threading.Event()
        self.standing_at_the_end: bool | None = None
        self.asked = threading.Event()
        self.broken = False

    def poll(self, timeout_ms: int) -> bool:
        """Run one step; a test can end the member at a step."""
        assert timeout_ms > 0
        self.joining.set()
        if self.hold.is_set() and self._left:
            self._left -= 1
        if self.broken:
            raise KafkaConnectionError
        return not self.rebalance_in_progress()

    def rebalance_in_progress(self) -> bool:
        """Whether the answer is still to come."""
        return self._left is None or self._left > 0

    def need_rejoin(self) -> bool:
        """As kafka-python."""
        return True

    def generation_if_stable(self) -> None:
        """In none: nothing to note."""

    def reset_generation(self) -> None:
        """Not called here."""

    def request_rejoin(self) -> None:
        """As asked."""
        self.asked.set()

    def _disable_heartbeat(self) -> None:
        """As kafka-python, in each join and when a newer member has the same group_instance_id."""
        self._heartbeat_enabled = False

    async def _on_close_prepare_async(self) -> None:
        """Not run here."""


def thread_of(
    coordinator: Coordinator, awake: Callable[[], bool] = lambda: True, **more: Any
) -> tuple[subject.MemberThread, OwnershipCell]:
    """A member's thread with it, which records at its end whether the rebalance was complete at the revocation."""

    def give_up(_: object) -> None:
        coordinator.standing_at_the_end = coordinator.rebalance_in_progress()

    consumer: Any = SimpleNamespace(_coordinator=coordinator, _net=SimpleNamespace(run=give_up), close=lambda **_: None)
    cell = OwnershipCell()
    listener = RebalanceListener(cell, on_assigned=None, on_revoked=None, on_lost=None, timeout_s=1, name="callbacks")
    return subject.MemberThread(consumer, listener, cell, awake, **more), cell


@pytest.mark.parametrize(
    ("broken", "asleep"),
    [
        pytest.param(False, False, id="quiet"),
        pytest.param(True, False, id="while the coordinator is away"),
        pytest.param(False, True, id="when its program had not asked for long"),
    ],
)
def test_a_rebalance_under_way_is_finished_before_partitions_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
    broken: bool,  # noqa: FBT001 - a parameter
    asleep: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Between a join and its answer kafka-python commits nothing: a revocation then would lose the last commit."""
    monkeypatch.setattr(subject, "_BACKOFF_S", 0.01)
    coordinator = Coordinator(polls=3)
    coordinator.broken = broken
    thread, _ = thread_of(coordinator, awake=lambda: not (asleep and coordinator.joining.is_set()))
    thread.start()
    assert coordinator.joining.wait(10)
    coordinator.hold.set()
    thread.end(leave=True)
    assert coordinator.standing_at_the_end is False


def test_a_join_that_was_sent_is_seen_through_by_a_member_that_is_not_awake() -> None:
    """No heartbeat is sent before the answer is used: after a session of sleep the member would be removed."""
    coordinator = Coordinator(polls=0)
    asked = threading.Event()

    def awake() -> bool:
        asked.set()
        return False

    thread, _ = thread_of(coordinator, awake=awake)
    thread.start()
    assert asked.wait(10)
    assert not coordinator.joining.is_set()
    coordinator.rejoining = True
    assert coordinator.joining.wait(10)
    thread.end(leave=True)


def test_a_fenced_member_ends_when_its_heartbeat_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps while nothing happens, and would read beside the newer member of its name meanwhile."""
    monkeypatch.setattr(subject, "_QUIET_POLL_S", 3600.0)
    coordinator: Any = Coordinator(polls=0)
    coordinator.group_instance_id = "one"
    coordinator._heartbeat_enabled = True
    coordinator._assignors = {}
    coordinator._subscription = SimpleNamespace(subscription=None, assigned_partitions=set)
    coordinator.config = {"max_poll_interval_ms": 1e9}
    generation = SimpleNamespace(generation_id=1, member_id="m", protocol="hrw")
    monkeypatch.setattr(coordinator, "generation_if_stable", lambda: generation)
    monkeypatch.setattr(coordinator, "need_rejoin", lambda: False)
    monkeypatch.setattr(coordinator, "stable", lambda: True, raising=False)
    thread, cell = thread_of(coordinator, quiet_s=3600.0)
    quiet = threading.Event()
    wait = thread._wake.wait

    def pause(seconds: float) -> bool:
        if seconds > 1:
            quiet.set()
        return wait(seconds)

    monkeypatch.setattr(thread._wake, "wait", pause)
    thread.start()
    assert quiet.wait(10)
    coordinator._disable_heartbeat()
    wait_until(lambda: isinstance(cell.failed, FencedInstanceIdError), 10)
    thread.end(leave=True)


def test_a_rebalance_that_is_asked_for_within_another_comes_after_it() -> None:
    """At the end of a rebalance kafka-python drops requests made during it."""
    coordinator = Coordinator(polls=0)
    coordinator.rejoining = True
    thread, _ = thread_of(coordinator)
    thread.rejoin()
    thread.start()
    for _ in range(3):
        coordinator.joining.clear()
        assert coordinator.joining.wait(10)
    assert not coordinator.asked.is_set()
    coordinator.rejoining = False
    assert coordinator.asked.wait(10)
    thread.end(leave=True)


def test_a_rebalance_that_does_not_end_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slowest member of the group would decide when this one may end."""
    monkeypatch.setattr(subject, "_SETTLE_S", 0.2)
    coordinator = Coordinator(polls=None)
    thread, _ = thread_of(coordinator)
    thread.start()
    assert coordinator.joining.wait(10)
    thread.end(leave=True)
    assert coordinator.standing_at_the_end is True


def test_an_end_does_not_pause_after_the_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """It paused as a quiet member does: `close` and a second `subscribe` took 3 s more than the rebalance."""
    coordinator = Coordinator(polls=1)
    coordinator.hold.set()
    thread, _ = thread_of(coordinator)
    pauses_s: list[float] = []

    def step(*, take_part: bool) -> float:
        assert take_part
        coordinator.poll(timeout_ms=1)
        return 3.0

    monkeypatch.setattr(thread, "_step", step)
    monkeypatch.setattr(time, "sleep", pauses_s.append)
    thread._settle()
    assert not coordinator.rebalance_in_progress()
    assert sum(pauses_s) == 0


def test_a_membership_that_failed_waits_for_no_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to its join has no receiver."""
    monkeypatch.setattr(subject, "_SETTLE_S", 1e9)
    coordinator = Coordinator(polls=None)
    thread, cell = thread_of(coordinator)
    thread.start()
    assert coordinator.joining.wait(10)
    cell.fail(RuntimeError("inside the client"))
    thread.end(leave=True)
    assert coordinator.standing_at_the_end is True


@pytest.mark.parametrize("fresh_s", [pytest.param(60.0, id="at once"), pytest.param(-1.0, id="after a long sleep")])
def test_an_answer_to_a_join_is_kept_for_the_next_poll_unless_it_is_old(
    monkeypatch: pytest.MonkeyPatch, fresh_s: float
) -> None:
    """kafka-python drops a complete join when it checks; an old answer may be of an earlier generation."""
    monkeypatch.setattr(subject, "_FRESH_S", fresh_s)
    coordinator: Any = Coordinator(polls=0)
    thread, _ = thread_of(coordinator)
    untyped: Any = Future
    coordinator._join_task = answer = untyped()
    looked: list[bool] = []
    monkeypatch.setattr(coordinator, "poll", lambda **_: looked.append(coordinator._join_task.is_done))
    thread._poll()
    answer.success(b"yours")
    thread._poll()
    assert looked == [False, fresh_s < 0]
    given: list[bytes] = []
    coordinator._join_task.add_callback(given.append)
    assert given == [b"yours"]


@pytest.mark.parametrize(
    ("answers", "requests"),
    [
        pytest.param([{"a", "b", "c"}], 1, id="all names at once"),
        pytest.param([set(), {"a", "b"}], 2, id="an answer from before the subscription"),
        pytest.param([{"a"}, {"a"}], 2, id="a topic that does not exist"),
    ],
)
def test_topics_are_listed_until_all_names_are_known_or_twice(
    monkeypatch: pytest.MonkeyPatch, answers: list[set[str]], requests: int
) -> None:
    """A leader without the topics would assign nothing; a request too many delays each start of a member."""
    asked: list[set[str]] = []
    known = [set[str]()]

    def run(*_: object) -> None:
        known[0] = answers[len(asked)]
        asked.append(known[0])

    coordinator = Coordinator(polls=0)
    thread, _ = thread_of(coordinator)
    monkeypatch.setattr(coordinator, "_net", SimpleNamespace(run=run), raising=False)
    monkeypatch.setattr(coordinator, "_subscription", SimpleNamespace(subscription={"a", "b"}), raising=False)
    cluster = SimpleNamespace(**{**vars(Coordinator._cluster), "topics": lambda **_: known[0]})
    monkeypatch.setattr(coordinator, "_cluster", cluster, raising=False)
    thread.start()
    assert coordinator.joining.wait(10)
    thread.end(leave=True)
    assert len(asked) == requests
