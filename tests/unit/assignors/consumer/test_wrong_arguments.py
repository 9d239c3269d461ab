"""A wrong argument of `GroupConsumer` is refused when it is made, with the value and the way out."""

from typing import Any

import pytest

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
