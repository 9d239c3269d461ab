"""A member without a broker."""

import re
import threading
from typing import Any

import pytest

from assignors import GroupMember, HRWAssignor, MembershipError
from assignors.member.callback_thread import CallbackThread

ALONE = {"group_id": "g", "bootstrap_servers": ["127.0.0.1:1"], "bootstrap_timeout_ms": 200}


@pytest.mark.parametrize(
    ("config", "subscription", "said"),
    [
        pytest.param({}, {"topics": ["t"]}, "give group_id", id="no group"),
        pytest.param({"group_id": "g"}, {}, "give either topics or pattern", id="nothing subscribed"),
        pytest.param({"group_id": "g"}, {"topics": ["t"], "pattern": "t"}, "either topics or pattern", id="both"),
        pytest.param(
            {"group_id": "g", "group.id": "g"}, {"topics": ["t"]}, "has no setting group.id", id="unknown setting"
        ),
        pytest.param({"group_id": "g"}, {"topics": "flights"}, "need a list of names", id="a text for topics"),
        pytest.param({"group_id": "g"}, {"pattern": "("}, "not a regular expression", id="no pattern"),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], subscription: dict[str, Any], said: str) -> None:
    """The constructor raises the error, not the member's thread."""
    with pytest.raises(MembershipError, match=re.escape(said)):
        GroupMember(config, assignors=[HRWAssignor()], **subscription)


def test_no_broker_is_an_error_of_the_start() -> None:
    """A start with a wrong address raises an error, and may be repeated."""
    with pytest.raises(MembershipError, match=r"cannot join group 'g' with bootstrap_servers=\['127.0.0.1:1'\]"):
        GroupMember(ALONE, topics=["t"], assignors=[HRWAssignor()]).start()


def test_an_address_that_is_none_is_named() -> None:
    """kafka-python's own message has only the part that is not a port."""
    with pytest.raises(MembershipError, match="localhost:kafka"):
        GroupMember({**ALONE, "bootstrap_servers": "localhost:kafka"}, topics=["t"], assignors=[HRWAssignor()]).start()


def test_a_refusal_by_the_assignor_is_final() -> None:
    """A consumer that shares its assignor with another one must get the error, and not join again forever."""
    member = GroupMember(ALONE, topics=["t"], assignors=[HRWAssignor()])
    vars(member)["_GroupMember__cell"].fail(MembershipError("one instance was given to two consumers"))
    assert member.fatal


def test_a_member_that_is_not_started_says_so() -> None:
    """No question waits for a thread that does not run."""
    member = GroupMember(ALONE, topics=["t"], assignors=[HRWAssignor()])
    with pytest.raises(MembershipError, match="not started"):
        member.end_offsets([("t", 0)])
    member.close()


@pytest.mark.parametrize("error", [ValueError(), SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_callbacks_run_in_order_and_an_error_stops_none(error: BaseException) -> None:
    """The group waits for the return of a callback: one that raises, or calls sys.exit(), has returned."""
    seen: list[int] = []
    done = threading.Event()
    thread = CallbackThread("callbacks")

    def broken(_: object) -> None:
        seen.append(1)
        raise error

    thread.put(broken, frozenset(), lambda: seen.append(2))
    thread.put(lambda _: seen.append(3), frozenset(), done.set)
    assert done.wait(10)
    thread.end()
    assert seen == [1, 2, 3]
    assert not thread.here()


def test_a_member_without_assignors_is_refused() -> None:
    """It could agree with no group."""
    with pytest.raises(MembershipError, match="one at least"):
        GroupMember(ALONE, topics=["t"], assignors=[])


def test_a_closed_member_is_not_started_again() -> None:
    """A start that did nothing would look like a member that waits for its partitions."""
    member = GroupMember(ALONE, topics=["t"], assignors=[HRWAssignor()])
    member.close()
    with pytest.raises(MembershipError, match="closed"):
        member.start()
