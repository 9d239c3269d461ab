"""Clients of kafka-python that cannot connect; nothing listens at port 1."""

import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor

from assignors.clients import LogOffsets
from assignors.errors import AssignorError
from assignors.fleet import Agent, KafkaMembers
from assignors.member.group_member import GroupMember


def offsets(config: Mapping[str, Any]) -> object:
    """As the autoscaler and the metrics of an agent."""
    return LogOffsets.connect(config)


def question(config: Mapping[str, Any]) -> object:
    """As the status of a fleet."""
    return KafkaMembers(Agent("a"), config).observe()


def member(config: Mapping[str, Any]) -> object:
    """As an agent."""
    return GroupMember({**config, "group_id": "g"}, topics=["t"], assignors=[RangePartitionAssignor()]).start()


@pytest.mark.parametrize("connect", [offsets, question, member])
def test_a_client_that_cannot_connect_leaves_no_thread(connect: Callable[[Mapping[str, Any]], object]) -> None:
    """A process that tries again while a cluster is away would run out of files: each thread has several sockets."""
    name = uuid.uuid4().hex
    with pytest.raises(AssignorError):
        connect({"bootstrap_servers": ["127.0.0.1:1"], "client_id": name, "bootstrap_timeout_ms": 100})
    assert not [one.name for one in threading.enumerate() if name in one.name]
