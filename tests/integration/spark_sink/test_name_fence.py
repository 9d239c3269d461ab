"""Two members of one agent's name in a real group."""

import time
from collections.abc import Callable

import pytest

from spark_sink.demo.cluster import Cluster
from spark_sink.errors import JoinError
from spark_sink.options.source_options import SourceOptions
from spark_sink.source import name_fence
from spark_sink.source.group_membership import KafkaMembership

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_the_newer_of_two_agents_of_one_name_ends(
    cluster: Cluster, topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on two hosts: no lock is between them."""
    monkeypatch.setattr(name_fence, "_MARGIN_S", 1.0)
    name = topic("names", 2)
    options = SourceOptions.parse(
        {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "kafka.group.id": name,
            "kafka.session.timeout.ms": "6000",
            "subscribe": name,
            "agent": "one",
        }
    )
    first, second = KafkaMembership(options), KafkaMembership(options)

    def both() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            first.assignment(10)
            second.assignment(10)

    try:
        assert first.assignment(60).partitions
        with pytest.raises(JoinError, match=r"agent 'one' of group .* is running already, on .*127\.0\.0\.1"):
            both()
        assert first._fence is not None
        assert first._fence.refusal is None
    finally:
        second.leave()
        first.leave()
