"""Errors of the broker name the property to change, and its value."""

from confluent_kafka import KafkaError, KafkaException

from assignors.member.broker_assigned_errors import membership_error


def test_an_unknown_assignor_is_named() -> None:
    """The broker's own text names neither the assignor nor the property."""
    error = KafkaException(KafkaError(KafkaError.UNSUPPORTED_ASSIGNOR))
    said = str(membership_error(error, "g", ["t"], "azimuth-hwr"))
    assert "group.remote.assignor='azimuth-hwr': group.consumer.assignors of the brokers does not list" in said
