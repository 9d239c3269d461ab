"""The mock cluster after its end."""

from collections.abc import Callable

import pytest

from producer.testing import MockCluster


@pytest.mark.parametrize(
    "use",
    [
        lambda cluster: cluster.bootstrap_servers,
        lambda cluster: cluster.create("t", [1]),
        lambda cluster: cluster.down(1),
        lambda cluster: cluster.refuse("t", 29),
        lambda cluster: cluster.wait_for_members(0),
    ],
    ids=["addresses", "topic", "broker", "error", "group"],
)
def test_a_closed_cluster_refuses(use: Callable[[MockCluster], object]) -> None:
    """Librdkafka would use freed memory, and end the process without a message."""
    with MockCluster(["az-a"]) as cluster:
        pass
    with pytest.raises(ValueError, match="closed"):
        use(cluster)
    cluster.close()
