"""Signals whose handlers raise or close the member, and functions of the program that raise."""

import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from assignors import GroupMember, HRWAssignor, MembershipError
from assignors.member.ending_thread import EndingThread
from producer.testing import MockCluster
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def mock() -> Iterator[MockCluster]:
    """Three brokers and a topic of two partitions."""
    with MockCluster() as made:
        made.wait_for_members(50)
        made.create("t", [1, 2])
        yield made


def member_of(mock: MockCluster, **more: Any) -> GroupMember:
    """A member of a group of its own."""
    config = {
        "bootstrap_servers": mock.bootstrap_servers.split(","),
        "group_id": f"interrupted-{uuid.uuid4()}",
        "api_version": (2, 0),
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": 6000,
    }
    return GroupMember(config, topics=["t"], assignors=[HRWAssignor(agent="a")], **more)


def client_of(member: GroupMember) -> Any:
    """The member's client."""
    return vars(member)["_GroupMember__consumer"]


@contextmanager
def handled(handler: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Set a handler of SIGUSR1, and return the function that sends the signal to the main thread."""
    before = signal.signal(signal.SIGUSR1, lambda *_: handler())
    try:
        yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupt() -> None:
    """Raise as the handler of Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("again", ["close again", "only wait"])
def test_a_close_that_ctrl_c_interrupts_is_finished(mock: MockCluster, again: str) -> None:
    """Else heartbeats go on, and a member without a program keeps its partitions."""
    told: list[str] = []
    go_on = threading.Event()
    with handled(interrupt) as send:

        def revoke(_: object) -> None:
            told.append("revoking")
            send()
            assert go_on.wait(20)
            told.append("revoked")

        member = member_of(mock, on_revoked=revoke).start()
        member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20)
        with pytest.raises(KeyboardInterrupt):
            member.close()
    assert told == ["revoking"]
    assert len(member.ownership().partitions) == 2
    go_on.set()
    if again == "close again":
        member.close()
    else:
        wait_until(lambda: client_of(member)._closed and not member.ownership().partitions)
    assert told == ["revoking", "revoked"]
    assert not member.ownership().partitions


def test_a_handler_may_close_a_member_that_starts(mock: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler runs in the thread that starts the member: it must not wait for the start, and ends the member."""
    connect = vars(GroupMember)["_GroupMember__connect"]
    member = member_of(mock)
    with handled(member.close) as send:

        def interrupted(one: GroupMember) -> Any:
            send()
            return connect(one)

        monkeypatch.setattr(GroupMember, "_GroupMember__connect", interrupted)
        with pytest.raises(MembershipError, match="closed"):
            member.start()
    assert client_of(member)._closed
    assert not [one for one in threading.enumerate() if one.name.startswith("group-member-interrupted")]


@pytest.mark.parametrize("error", [LookupError("away"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("name", ["awake", "on_topics"])
def test_an_error_of_a_function_of_the_program_ends_the_membership(
    mock: MockCluster, name: str, error: BaseException
) -> None:
    """Else the thread would end unnoticed, and the member would join no rebalance."""

    def broken(*_: object) -> bool:
        raise error

    with member_of(mock, **{name: broken}) as member:
        wait_until(lambda: member.failed is error)
        with pytest.raises(MembershipError, match=type(error).__name__):
            member.wait_joined(1)


def test_an_error_of_on_refused_ends_the_membership(mock: MockCluster) -> None:
    """As above."""

    def broken(*_: object) -> None:
        raise LookupError

    mock.fail(11, 30)  # JoinGroup, GROUP_AUTHORIZATION_FAILED
    try:
        with member_of(mock, on_refused=broken) as member:
            wait_until(lambda: isinstance(member.failed, LookupError))
    finally:
        mock.fail(11, 0)


def test_an_error_of_on_change_is_logged(mock: MockCluster, caplog: pytest.LogCaptureFixture) -> None:
    """A change of the ownership must not stop halfway."""

    def broken() -> None:
        raise LookupError

    with member_of(mock, on_change=broken) as member:
        assert len(member.wait_for(lambda now: now.joined and len(now.partitions) == 2, 20).partitions) == 2
        assert member.failed is None
    assert "on_change" in caplog.text


def test_an_end_runs_once_and_each_call_waits_for_it() -> None:
    """The error is raised in the call whose end it is."""
    ended: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def end() -> None:
        begun.set()
        assert go_on.wait(20)
        ended.append("first")
        raise LookupError

    one = EndingThread("end")
    errors: list[str] = []

    def first() -> None:
        try:
            one.run(end)
        except LookupError:
            errors.append("first")

    threads = [threading.Thread(target=first), threading.Thread(target=lambda: one.run(lambda: ended.append("second")))]
    threads[0].start()
    assert begun.wait(20)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    one.run(lambda: ended.append("third"))
    assert (ended, errors) == (["first"], ["first"])


def test_an_end_runs_in_the_calling_thread_while_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread can be started then, as in a function of `atexit` from Python 3.12 on."""

    def refused(_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    ended: list[str] = []
    EndingThread("end").run(lambda: ended.append("end"))
    assert ended == ["end"]
