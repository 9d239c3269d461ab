"""Errors of the broker name the property to change, and its value."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from assignors.errors import MembershipError
from assignors.member.broker_assigned_errors import membership_error
from assignors.member.broker_assigned_member import BrokerAssignedMember


def test_an_unknown_assignor_is_named() -> None:
    """The broker's own text names neither the assignor nor the property."""
    error = KafkaException(KafkaError(KafkaError.UNSUPPORTED_ASSIGNOR))
    said = str(membership_error(error, "g", ["t"], "azimuth-hwr"))
    assert "group.remote.assignor='azimuth-hwr': group.consumer.assignors of the brokers does not list" in said


@pytest.mark.parametrize("group", [{}, {"group.id": None}, {"group.id": ""}, {"group.id": " "}], ids=str)
def test_a_member_without_a_group_is_refused(group: dict[str, str | None]) -> None:
    """The client of librdkafka ended the process."""
    with pytest.raises(MembershipError, match=r"group\.id is missing"):
        BrokerAssignedMember({"bootstrap.servers": "127.0.0.1:1", **group}, topics=["t"])
