# ruff: noqa: ANN401 -- kafka-python is untyped
# ruff: noqa: SLF001 -- the one module that names what kafka-python keeps private
"""Every private name of kafka-python that is used here.

kafka-python gives no guarantee for these names, so `pyproject.toml` bounds its version. The assignors use them through
the functions, which this module's test calls on kafka-python's own objects. `clients` and `member`, which work on
kafka-python's coordinator, use the names in `NAMES` directly; the test looks for each in the installed version.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kafka import KafkaConsumer
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import Fetcher
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import TopicPartition

NAMES: Final[Mapping[type, tuple[str, ...]]] = {
    KafkaConsumer: ("_closed", "_coordinator", "_fetcher", "_manager", "_net"),
    ClusterMetadata: ("_last_successful_refresh_ms", "_listeners", "_need_update", "_partitions"),
    ConsumerCoordinator: (
        "_assignors",
        "_cluster",
        "_disable_heartbeat",
        "_do_join_and_sync_async",
        "_generation",
        "_handle_find_coordinator_response",
        "_heartbeat_closed",
        "_heartbeat_enabled",
        "_join_task",
        "_manager",
        "_net",
        "_offset_fetch_futures",
        "_on_close_prepare_async",
        "_on_join_complete_async",
        "_on_join_prepare_async",
        "_perform_assignment",
        "_rebalance_protocol",
        "_send_heartbeat_request",
        "_send_offset_commit_request",
        "_subscription",
    ),
    Fetcher: ("_group_list_offset_requests", "_send_list_offsets_request"),
    StickyPartitionAssignor: ("_metadata",),
}
"""The private names by class."""

_LONGEST_BACKOFF_MS: Final = 1_000  # of Kafka's own consumer, retry.backoff.max.ms
_SHORT_BACKOFF_MS: Final = 10


def partition_metadata(cluster: Any, topic: str) -> dict[int, Any]:
    """Return a copy of the metadata of a topic's partitions (`leader_id`, `replica_nodes`) by number.

    It is a copy because another thread may change the original. No public method returns the replicas of a partition.
    """
    return dict(cluster._partitions.get(topic) or {})


def listening_coordinators(cluster: Any) -> list[Any]:
    """List the objects whose weakly referenced methods listen to the cluster's metadata, including coordinators."""
    targets = (getattr(listener, "target", None) for listener in list(cluster._listeners))
    return [found for target in targets if callable(target) and (found := target()) is not None]


def assignors_of(coordinator: Any) -> Mapping[str, Any]:
    """Return a coordinator's assignors by name; empty for a listener that is not a coordinator."""
    assignors: Mapping[str, Any] = getattr(coordinator, "_assignors", {})
    return assignors


def asking_coordinator() -> Any:
    """Return the coordinator that requests an assignor's metadata, from the call stack; None if there is none.

    kafka-python does not pass it, and nothing else distinguishes two members that share one assignor.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if isinstance(asking := frame.f_locals.get("self"), ConsumerCoordinator):
            return asking
    return None


def is_closed(coordinator: Any) -> bool:
    """Return whether a coordinator has left its group for good."""
    return bool(coordinator._heartbeat_closed)


def owned_by(coordinator: Any) -> tuple[tuple[tuple[str, int], ...], int]:
    """Return the partitions that a coordinator's consumer owns, sorted, and the generation; -1 if it is in none."""
    owned = sorted((one.topic, one.partition) for one in coordinator._subscription.assigned_partitions())
    return tuple(owned), int(coordinator._generation.generation_id)


def sticky_subscription(topics: list[str], owned: Iterable[TopicPartition], generation: int) -> Any:
    """Create the subscription of a member of the stock sticky assignor that owns these partitions."""
    return StickyPartitionAssignor._metadata(topics, owned, generation)


def last_metadata_ms(cluster: Any) -> float:
    """Return the time of the last metadata, in milliseconds of the monotonic clock; 0 before the first."""
    return float(cluster._last_successful_refresh_ms)


def wake_on_rejoin(coordinator: Any, wake: Callable[[], object]) -> None:
    """Call `wake` whenever the coordinator finds that it must rejoin the group, or stops its heartbeats.

    A refused heartbeat stops them if a newer member has the same group_instance_id; nothing else shows that.
    """

    def then_wake(change: Callable[..., None]) -> Callable[..., None]:
        def changed(*arguments: Any, **named: Any) -> None:
            change(*arguments, **named)
            wake()

        return changed

    coordinator.request_rejoin = then_wake(coordinator.request_rejoin)
    coordinator.reset_generation = then_wake(coordinator.reset_generation)
    coordinator._disable_heartbeat = then_wake(coordinator._disable_heartbeat)


def wake_on_metadata(coordinator: Any, wake: Callable[[], object]) -> None:
    """Call `wake` after each response with metadata."""
    _listen(coordinator, lambda _: wake())


def back_off_absent_topics(coordinator: Any) -> None:
    """Request a topic that does not exist less and less often, as Kafka's own consumer does (KIP-580).

    kafka-python requests it ten times a second, as long as it does not exist, and each answer wakes the member.
    """
    cluster = coordinator._cluster
    first_ms = cluster.config["retry_backoff_ms"]

    def answered(_: object) -> None:
        # After an answer an update is needed only for topics that it lacks.
        longer_ms = min(2 * cluster.config["retry_backoff_ms"], max(_LONGEST_BACKOFF_MS, first_ms))
        cluster.config["retry_backoff_ms"] = longer_ms if cluster._need_update else first_ms

    _listen(coordinator, answered)


@contextlib.contextmanager
def short_backoff(coordinator: Any) -> Iterator[None]:
    """Let a request for metadata follow the one before at once, within the block.

    kafka-python lets `retry_backoff_ms` pass between any two of them, not only before a retry.
    """
    config = coordinator._cluster.config
    usual_ms = config["retry_backoff_ms"]
    config["retry_backoff_ms"] = min(_SHORT_BACKOFF_MS, usual_ms)
    try:
        yield
    finally:  # an answer may have made it longer
        config["retry_backoff_ms"] = max(usual_ms, config["retry_backoff_ms"])


def _listen(coordinator: Any, listener: Callable[[Any], object]) -> None:
    async def listen() -> None:  # in the event loop, which calls the listeners
        coordinator._cluster.add_listener(listener)

    coordinator._net.run(listen)
