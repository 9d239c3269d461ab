"""A wrong argument of `GroupConsumer` is refused when it is made, with the value and the way out."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer

from assignors import GroupConsumer, HRWAssignor
from assignors.consumer.consumer_errors import ArgumentError

LEAST = {"bootstrap.servers": "localhost:1", "group.id": "g"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"assignors": []}, "is empty: need one or more, or leave it out", id="no assignor"),
        pytest.param({"assignor": [HRWAssignor()]}, "did you mean 'assignors'?", id="misspelt"),
        pytest.param({"logger": "client"}, "logger='client': need a logging.Logger", id="a logger's name"),
        pytest.param({"client.rack": "z" * 1001}, "client.rack=", id="a rack too long"),
        pytest.param({"members": {}}, "did you mean 'member'?", id="plural"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_right_one(given: dict[str, Any], said: str) -> None:
    """The empty list failed at the join, the misspelt name was an unknown property of the client, the logger unused."""
    with pytest.raises(ArgumentError) as refused:
        GroupConsumer(LEAST, **given)
    assert said in str(refused.value)


def test_a_second_initialization_is_refused() -> None:
    """As by the bare consumer. It made a second member, and left the first one in its group, with its partitions."""
    with GroupConsumer(LEAST) as one, pytest.raises(RuntimeError, match="initialized already"):
        one.__init__(LEAST)  # type: ignore[misc]  # wrong on purpose


@pytest.mark.parametrize("call", ["poll", "consume"])
def test_a_timeout_that_is_not_a_number_is_refused(call: str) -> None:
    """It passed for no limit: an idle program never got its call back."""
    with GroupConsumer(LEAST) as one, pytest.raises(ArgumentError, match="timeout=nan, need a number of seconds"):
        getattr(one, call)(timeout=math.nan)


@pytest.mark.parametrize("closed", [False, True])
def test_refused_calls_leave_nothing_behind(closed: bool) -> None:  # noqa: FBT001 -- a case
    """Each one left an empty list, at which all later ones looked: a program that tries again got slow, and grew."""
    with GroupConsumer(LEAST) as one:
        if closed:
            one.close()
        for _ in range(3):
            with pytest.raises(RuntimeError if closed else ArgumentError):
                one.consume(-1)
        assert not one._kafka_azimuth.left


class _Uninitialized(GroupConsumer):
    def __init__(self) -> None: ...


_CALLS: dict[str, Callable[[Consumer], object]] = {
    "poll": lambda one: one.poll(0.1),
    "consume": lambda one: one.consume(1, 0.1),
    "subscribe": lambda one: one.subscribe(["t"]),
    "unsubscribe": lambda one: one.unsubscribe(),
    "assignment": lambda one: one.assignment(),
    "assign": lambda one: one.assign([]),
    "commit": lambda one: one.commit(),
    "committed": lambda one: one.committed([]),
    "position": lambda one: one.position([]),
    "memberid": lambda one: one.memberid(),
    "list_topics": lambda one: one.list_topics(timeout=0.1),
}


@pytest.mark.parametrize("name", list(_CALLS))
def test_a_subclass_that_does_not_initialize_is_as_closed(name: str) -> None:
    """As the bare consumer: RuntimeError, and not an AttributeError about a name that the program has never seen."""
    one = _Uninitialized()
    with pytest.raises(RuntimeError, match="not initialized: call super"):
        _CALLS[name](one)  # type: ignore[arg-type]
    one.close()
    with one:
        pass


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    """`hasattr` and `getattr` with a default depend on it, before and after the initialization."""
    with GroupConsumer(LEAST) as one:
        for each in (one, _Uninitialized()):
            assert not hasattr(each, "seek_to_end")
            assert not hasattr(each, "_unknown")
