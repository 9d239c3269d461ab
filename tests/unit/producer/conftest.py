"""A mock cluster per test: real sockets, no broker process. And the hot path, both ways."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from producer import AZAwareProducer
from producer.partitioning import produce_interpreted
from producer.testing import MockCluster

try:
    from producer.partitioning import produce_compiled
except ImportError:  # built without a C compiler
    produce_compiled = None  # type: ignore[assignment]


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    """Three brokers, one a zone."""
    with MockCluster() as cluster:
        yield cluster


@pytest.fixture(
    params=[pytest.param(produce_interpreted, id="interpreted"), pytest.param(produce_compiled, id="compiled")]
)
def hot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Have `AZAwareProducer` take one of its two hot paths."""
    path: ModuleType | None = request.param
    if path is None:
        pytest.skip("the hot path is not compiled here: it takes a C compiler and another install")
    monkeypatch.setattr(AZAwareProducer, "_kafka_azimuth_hot", path)
    monkeypatch.setattr(AZAwareProducer, "produce", path.produce)
    return path
