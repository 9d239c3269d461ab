"""Errors of topics: each once, and again only after the topic existed."""

import pytest
from confluent_kafka import KafkaError

from assignors.consumer.error_messages import TopicErrors
from assignors.consumer.subscription import Subscription


def told(errors: TopicErrors) -> list[tuple[str | None, int]]:
    """The topics and codes of the messages that wait."""
    found = []
    for message in errors.take():
        error = message.error()
        assert error is not None
        found.append((message.topic(), error.code()))
    return found


def test_a_deleted_topic_of_a_pattern_is_reported_once_and_again_after_it_was_there() -> None:
    """As of a plain name: its records end, and the program should hear why."""
    gone = [("t1", KafkaError.UNKNOWN_TOPIC_OR_PART)]
    errors = TopicErrors(lambda: None)
    errors.subscribe(Subscription.of(["^t"]))
    errors.update({"t1", "t2", "other"}, ())
    assert told(errors) == []
    errors.update({"t2"}, ())
    assert told(errors) == gone
    errors.update({"t2", "t3"}, ())
    assert told(errors) == []
    errors.update({"t1", "t2", "t3"}, ())
    errors.update({"t2", "t3"}, ())
    assert told(errors) == gone
    errors.subscribe(Subscription.of(["^t"]))
    errors.update({"t2"}, ())
    assert told(errors) == [], "a new subscription never saw the others"


@pytest.mark.parametrize("subscribed", ["t1", "^t"])
@pytest.mark.parametrize("eager", [False, True])
def test_partitions_are_lost_with_their_topic_until_it_is_there_again(subscribed: str, *, eager: bool) -> None:
    """As in librdkafka, which revokes them in eager protocols only."""
    errors = TopicErrors(lambda: None, eager=eager)
    errors.subscribe(Subscription.of([subscribed, "other"]))
    for known, lost in (({"t1", "other"}, False), ({"other"}, True), ({"t1", "other"}, False)):
        errors.update(known, ())
        assert errors.loses("t1") is (lost and not eager)
        assert not errors.loses("other")
