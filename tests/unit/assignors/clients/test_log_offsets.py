"""Offsets through kafka-python while a broker is silent, on librdkafka's mock cluster."""

from typing import Any

import pytest

from assignors.clients import LogOffsets
from assignors.errors import MembershipError
from producer.testing import MockCluster
from tests.silent_broker import SILENT_MS
from tests.waiting import wait_until

NOT_SPOKEN = {"api_version": (2, 0)}  # the mock cluster does not say which versions it speaks


@pytest.mark.slow
def test_commits_come_from_the_new_coordinator_while_the_old_one_is_silent() -> None:
    """Another broker takes a group over after nine seconds; kafka-python waits for the old one for half a minute."""
    with MockCluster() as cluster:
        cluster.create("t", [2])
        coordinator: Any = cluster
        coordinator._do("rd_kafka_mock_coordinator_set", b"group", b"g", 1)
        servers = cluster.bootstrap_servers.split(",")
        logs = LogOffsets.connect({"bootstrap_servers": servers, "group_id": "g", **NOT_SPOKEN})
        try:
            assert answered(logs)
            cluster.delay(1, SILENT_MS)
            assert not answered(logs)
            coordinator._do("rd_kafka_mock_coordinator_set", b"group", b"g", 2)
            wait_until(lambda: answered(logs), 20, "the commits")
        finally:
            cluster.delay(1, 0)
            logs.close()


def answered(logs: LogOffsets) -> bool:
    """Whether the group's coordinator answers soon."""
    try:
        logs.committed([("t", 0)], 1.0)
    except MembershipError:
        return False
    return True


def test_a_longer_wait_for_records_is_no_error() -> None:
    """Of a user's properties; it has no meaning here, and kafka-python refuses one that is longer than the answer's."""
    with MockCluster() as cluster:
        cluster.create("t", [1])
        servers = cluster.bootstrap_servers.split(",")
        logs = LogOffsets.connect({"bootstrap_servers": servers, "fetch_max_wait_ms": 60_000, **NOT_SPOKEN})
        assert logs.ends([("t", 0)], 10.0) == {("t", 0): 0}
        logs.close()
