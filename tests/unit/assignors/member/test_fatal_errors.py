"""Errors of a group that a member reports."""

import logging

import pytest
from kafka.errors import FencedInstanceIdError, InconsistentGroupProtocolError

from assignors import FencedError, GroupMember, HRWAssignor
from assignors.member.fatal_errors import Refusals

ALONE = {"group_id": "g", "bootstrap_servers": ["127.0.0.1:1"]}


def test_a_member_whose_id_is_taken_says_what_to_do() -> None:
    """The name of kafka-python's error does not say that two running members have one id."""
    member = GroupMember(ALONE, topics=["t"], assignors=[HRWAssignor()])
    vars(member)["_GroupMember__cell"].fail(FencedInstanceIdError("host-1-a"))
    with pytest.raises(FencedError, match=r"'host-1-a'.*give each running member an id of its own"):
        member.end_offsets([("t", 0)])


def test_a_refusal_because_of_other_assignors_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    """It is the first error of a program that joins a group whose other members are not moved yet."""
    refusals = Refusals("g", lambda _error, _finding: None)
    with caplog.at_level(logging.WARNING):
        refusals.add(InconsistentGroupProtocolError(), finding=False)
    assert "give all members of the group the same ones" in caplog.text
