"""The errors of a consumer as values."""

import copy
import pickle

import pytest
from confluent_kafka import KafkaError

from assignors.consumer.consumer_errors import ArgumentError, ClosedConsumerError, ConsumerError, FencedConsumerError


@pytest.mark.parametrize(
    "error",
    [
        ConsumerError("no", KafkaError.UNKNOWN_TOPIC_OR_PART),
        ArgumentError("no"),
        ClosedConsumerError("no"),
        FencedConsumerError("no", KafkaError.ILLEGAL_GENERATION),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_is_the_same_error(error: ConsumerError) -> None:
    """Pools of processes pickle an error, and frameworks copy it; both raised a TypeError about other arguments."""
    for other in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 -- our own
        assert type(other) is type(error)
        assert (other.code(), other.str(), str(other)) == (error.code(), "no", "no")
        assert other.args[0].code() == error.code()
