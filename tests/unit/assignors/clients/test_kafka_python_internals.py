"""The private names of kafka-python exist in the installed version, and only one module uses them."""

import ast
import asyncio
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.cluster import ClusterMetadata
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import TopicPartition
from kafka.util import WeakMethod

import assignors
from assignors import HRWAssignor
from assignors.clients import kafka_python_internals as internals

ROOT = Path(assignors.__file__).parent
FOLDERS = ["protocol", "comparison"]
ADAPTERS = ["clients", "member"]
OWN = {"_asdict", "_getframe"}  # Python's


def test_the_names_are_those_of_the_installed_version() -> None:
    """Otherwise a rename in a release would show only as missing racks or a missing rebalance."""
    cluster: Any = ClusterMetadata()
    coordinator: Any = object.__new__(ConsumerCoordinator)
    ours = HRWAssignor()
    coordinator._assignors = {"hrw": ours}
    cluster.add_listener(WeakMethod(coordinator.need_rejoin))
    assert hasattr(cluster, "_partitions")
    cluster._partitions = {"t": {0: "metadata"}}
    assert internals.partition_metadata(cluster, "t") == {0: "metadata"}
    assert internals.partition_metadata(cluster, "other") == {}
    assert internals.listening_coordinators(cluster) == [coordinator]
    assert internals.assignors_of(coordinator) == {"hrw": ours}
    assert internals.last_metadata_ms(cluster) == cluster._last_successful_refresh_ms == 0
    woken: list[bool] = []
    coordinator._lock = threading.Lock()
    internals.wake_on_rejoin(coordinator, lambda: woken.append(coordinator.rejoin_needed))
    coordinator.request_rejoin()
    coordinator.reset_generation()
    assert woken == [True, True]
    said = internals.sticky_subscription(["t"], [TopicPartition("t", 0)], 1)
    assert list(said.topics) == ["t"]


def test_metadata_wakes_a_member_that_has_nothing_to_do() -> None:
    """Else a new topic would wait for the member's next step, seconds later."""
    cluster: Any = ClusterMetadata()
    net = SimpleNamespace(run=lambda function: asyncio.run(function()))
    woken: list[bool] = []
    internals.wake_on_metadata(SimpleNamespace(_cluster=cluster, _net=net), lambda: woken.append(True))
    for listener in cluster._listeners:
        listener(cluster)
    assert woken == [True]


def test_an_absent_topic_is_requested_less_and_less_often() -> None:
    """Each request is an answer for all brokers' topics and a wake-up; a member can wait for its topic for days."""
    cluster: Any = ClusterMetadata()
    net = SimpleNamespace(run=lambda function: asyncio.run(function()))
    internals.back_off_absent_topics(SimpleNamespace(_cluster=cluster, _net=net))

    def backoff_ms(*, absent: bool) -> float:
        cluster._need_update = absent  # as after an answer without one of the member's topics
        for listener in cluster._listeners:
            listener(cluster)
        return float(cluster.refresh_backoff())

    assert [backoff_ms(absent=True) for _ in range(6)] == [200, 400, 800, 1000, 1000, 1000]
    assert [backoff_ms(absent=False) for _ in range(2)] == [100, 100]
    assert backoff_ms(absent=True) == 200


def private_names(path: Path) -> Iterator[str]:
    """Attributes with one leading underscore of anything but `self` and `cls`, also those read by `getattr`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
                yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr"}:
            name = node.args[1]
            if isinstance(name, ast.Constant) and str(name.value).startswith("_"):
                yield str(name.value)


def test_no_other_package_reaches_into_a_client_of_kafka_python() -> None:
    """`fleet` once read the heartbeat of a member's coordinator."""
    listed = {name for names in internals.NAMES.values() for name in names}
    elsewhere = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in ADAPTERS]
    found = {path.name: names for path in elsewhere if (names := listed.intersection(private_names(path)))}
    assert not found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_other_module_names_what_kafka_python_keeps_private(folder: str) -> None:
    """For a new version of kafka-python only one module has to be reviewed, not twenty."""
    found = {path.name: names for path in (ROOT / folder).glob("*.py") if (names := sorted(private_names(path)))}
    assert not found


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in internals.NAMES.items() for name in names], ids=str
)
def test_each_private_name_is_one_of_the_installed_version(kind: type, name: str) -> None:
    """A release that renames one would break a membership only where that name is read: within a rebalance."""
    sources = [inspect.getsource(one) for one in kind.__mro__ if one.__module__.startswith("kafka.")]
    assert hasattr(kind, name) or any(f"self.{name} = " in source for source in sources)


@pytest.mark.parametrize("folder", ADAPTERS)
def test_the_adapters_use_no_private_name_that_is_not_listed(folder: str) -> None:
    """For a new version of kafka-python only the list has to be reviewed, not the code."""
    listed = {name for names in internals.NAMES.values() for name in names}
    used = {name for path in (ROOT / folder).glob("*.py") for name in private_names(path) if name.islower()}
    assert used - listed <= OWN
