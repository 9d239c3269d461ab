"""What librdkafka describes of a group of the new protocol, in words for people."""

import pytest
from confluent_kafka import ConsumerGroupState

from assignors.comparison.broker_assigned_group import _state


@pytest.mark.parametrize(
    ("described", "said"),
    [
        (ConsumerGroupState.STABLE, "Stable"),
        (ConsumerGroupState.EMPTY, "Empty"),
        (ConsumerGroupState.UNKNOWN, "Rebalancing"),
    ],
)
def test_a_group_that_reconciles_is_not_unknown(described: ConsumerGroupState, said: str) -> None:
    """The library has no names for Assigning and Reconciling; `Unknown` looks like a fault of the group."""
    assert _state(described) == said
