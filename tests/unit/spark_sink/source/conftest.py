"""A group of one member."""

import pytest

from tests.unit.spark_sink.source.trigger_group import A0, A1, Group


@pytest.fixture
def group() -> Group:
    """A group whose member holds a/0 and a/1 with 10 records each."""
    made = Group(last={A0: 10, A1: 10})
    made.give(A0, A1)
    return made
