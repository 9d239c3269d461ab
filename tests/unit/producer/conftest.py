"""A mock cluster per test: real sockets, no broker process."""

from collections.abc import Iterator

import pytest

from producer.testing import MockCluster


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers, one a zone."""
    with MockCluster() as cluster:
        yield cluster
