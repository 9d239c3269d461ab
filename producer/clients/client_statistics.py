"""librdkafka's statistics: bytes on the wire by zone, queues by partition, lost brokers."""

import json
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from confluent_kafka import KafkaError

from assignors.clients import whole_number
from producer.clients.configured_policy import with_default
from producer.clients.leader_watcher import LeaderWatcher
from producer.clients.stalled_partitions import StalledPartitions
from producer.clients.wire_bytes_by_zone import RACKS_WITHIN_S, AwaitedRacks, WireBytesByZone
from producer.errors import PolicyError
from producer.metadata_requests import Topology
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import UNKNOWN, Count, Traffic

_DEFAULTS: Mapping[str, Any] = {"statistics.interval.ms": 5000}
_STUCK = 1 << 60
_LINGER_MS = 5.0  # librdkafka's default
_LOST = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})  # noqa: SLF001 - its constants


class Statistics:
    """Reads librdkafka's reports while the application polls, and passes them to the application's callbacks."""

    def __init__(self, topics_in_use: TopicsInUse, watcher: LeaderWatcher, topology: Topology) -> None:
        self._topics_in_use = topics_in_use
        self._watcher = watcher
        self._topology = topology
        self._lock = threading.RLock()  # a signal handler may call while this thread holds it
        within_s = RACKS_WITHIN_S if topology.reads_racks else 0.0
        self._wire = WireBytesByZone(within_s=within_s)
        self._awaited = AwaitedRacks(within_s=within_s)
        self._up_since: dict[int, int] = {}
        self._held: dict[str, dict[int, Count]] = {}
        self._seen: dict[tuple[str, int], Count] = {}
        self._topics: dict[tuple[str, str], Count] = {}
        self._unshared: dict[str, int] = {}
        self._last_fresh: dict[str, dict[str, Count]] = {}
        self._interval_s = 0.0
        self._stalled = StalledPartitions(0.0)

    def with_defaults(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Add the default settings, and expect the first report.

        Raises:
            PolicyError: the policy needs statistics, and the configuration switches them off.
        """
        extended = {**_DEFAULTS, **with_default(config)}
        self._interval_s = whole_number(extended["statistics.interval.ms"], 0) / 1000
        if self._interval_s:
            self._watcher.reports.expect(self._interval_s)
        timeout_ms = self._topics_in_use.policy.availability_timeout_ms
        if timeout_ms:
            if not self._interval_s:
                raise PolicyError(
                    f"availability_timeout_ms={timeout_ms} needs statistics: set statistics.interval.ms above 0"
                )
            self._stalled = StalledPartitions((timeout_ms + _linger_ms(extended)) / 1000)
        return extended

    def with_callbacks(self, config: Mapping[str, Any], *, coroutines: bool = False) -> dict[str, Any]:
        """Call our callbacks before the application's.

        Args:
            config: the producer's configuration.
            coroutines: whether the application's callbacks are coroutines, as those of the asyncio client.

        Returns:
            A configuration with both; statistics are switched on unless an interval was set.
        """
        both: Callable[..., Any] = _both_async if coroutines else _both
        extended = self.with_defaults(config)
        callbacks = {"stats_cb": self.on_report, "error_cb": self.on_error}
        for name, own in callbacks.items():
            theirs = config.get(name)
            if theirs is not None:
                extended[name] = both(own, theirs)
            elif coroutines or name not in config:  # else the client refuses the None, as a bare one does
                extended[name] = own
        if not coroutines:
            return extended
        return _WithPlainCallbacks(extended, {name for name in callbacks if config.get(name) is None})

    def on_error(self, error: KafkaError) -> None:
        """Read the leaders again when a broker is lost."""
        if error.code() in _LOST:
            self._watcher.expect_changes()

    def on_report(self, text: str) -> None:
        """Process one report of librdkafka."""
        self._watcher.reports.expect(self._interval_s)
        report = json.loads(text)
        brokers = [broker for broker in report["brokers"].values() if broker["nodeid"] >= 0]
        down = {broker["nodeid"] for broker in brokers if broker["state"] != "UP"}
        sent = {broker["nodeid"]: broker["txbytes"] for broker in brokers}
        up = {one["nodeid"]: report["ts"] - one["stateage"] for one in brokers if one["state"] == "UP"}
        returned = [since for broker, since in up.items() if since > self._up_since.get(broker, since)]
        self._up_since.update(up)
        with self._lock:
            self._wire.update(lambda: sent, self._topology.racks)
            for topic, about in report["topics"].items():
                self._book(topic, about)
        if returned:
            self._watcher.expect_racks(max(returned) / 1e6)
        written_at = report["ts"] / 1e6  # librdkafka's clock is the monotonic one
        for topic, about in report["topics"].items():
            leaders = {int(number): one["leader"] for number, one in about["partitions"].items()}
            self._watcher.take_leaders(topic, leaders, written_at)
            if self._topics_in_use.policy.adaptive:
                stalled = self._stalled.update(topic, about["partitions"], written_at)
                self._topics_in_use.set_queues(
                    topic, queues(about["partitions"], down, self._topics_in_use.policy.batch_bytes, stalled)
                )

    def _book(self, topic: str, about: Mapping[str, Any]) -> None:
        """Divide the compressed bytes of the topic's batches among the zones of its records.

        The batches of a topic are counted together, so new records wait until no leader of theirs waits for its rack.
        """
        racks = self._topology.racks
        new = self._held.pop(topic, {})
        for number, one in about["partitions"].items():
            place = topic, int(number)
            now = Count(one["txmsgs"], one["txbytes"])
            before = self._seen.get(place, Count())
            if now.records < before.records:  # the topic was recreated, so librdkafka counts from 0
                before = Count()
            if now.records > before.records:
                self._seen[place] = now
                count = Count(now.records - before.records, now.bytes - before.bytes)
                new[one["leader"]] = new.get(one["leader"], Count()).plus(count)
        waiting = self._unshared.pop(topic, 0)
        batches = waiting + about["batchsize"]["sum"]
        if any([self._awaited.awaits(leader, racks) for leader in new]):  # noqa: C419 - all of them begin to wait now
            self._held[topic], self._unshared[topic] = new, batches
            return
        fresh: dict[str, Count] = {}
        for leader, count in new.items():
            zone = racks.get(leader) or UNKNOWN
            fresh[zone] = fresh.get(zone, Count()).plus(count)
        # A report may be written in the middle of a batch: it may count the batch before its records, or after them.
        if fresh:
            self._last_fresh[topic] = fresh
        elif waiting:
            fresh = {zone: Count(0, count.bytes) for zone, count in self._last_fresh.get(topic, {}).items()}
        if not fresh:
            self._unshared[topic] = batches
            return
        for (zone, count), size in zip(fresh.items(), shares(batches, [c.bytes for c in fresh.values()]), strict=True):
            cell = topic, zone
            self._topics[cell] = self._topics.get(cell, Count()).plus(Count(count.records, size))

    def complete(self, traffic: Traffic) -> Traffic:
        """Add the bytes on the wire from the last report."""
        with self._lock:
            if not self._interval_s:
                return traffic
            # Empty before the first report: an estimate before compression would be larger than the first figures.
            return replace(
                traffic,
                wire_bytes=self._wire.by_zone(),
                wire_topics=dict(self._topics),
                wire_estimated=False,
            )


class _WithPlainCallbacks(dict[str, Any]):
    """A configuration that hides the names of our callbacks from the asyncio client, which would make them coroutines.

    A thread that polls waits for such a coroutine, and for ever if the loop ends before it has begun: the interpreter's
    end then waits for the thread. A bare client without callbacks has no such wait.
    """

    def __init__(self, config: Mapping[str, Any], plain: Collection[str]) -> None:
        super().__init__(config)
        self._plain = plain

    def __contains__(self, name: object) -> bool:
        return name not in self._plain and super().__contains__(name)


def queues(
    partitions: Mapping[str, Mapping[str, int]],
    down: Collection[int] = (),
    batch_bytes: int = 1,
    stalled: Collection[int] = (),
) -> dict[int, int]:
    """Count the records that wait for each partition, in batches.

    Args:
        partitions: the `partitions` of one topic in a report.
        down: ids of brokers without a connection.
        batch_bytes: size of a batch, the unit of the queues. With bytes as unit, a queue of a few records would weigh
            so much more than an empty one that one partition would get all records until the next report.
        stalled: partitions whose leader does not answer records.

    Returns:
        Full batches per partition id, in the client's queue and in flight to the broker; partitions without one are
        missing. A stalled partition, and a queue for a broker that is down, count as longer than any other: hardly any
        record joins them.

    Source: KIP-794, where queues are counted in batches.
    """
    waiting = {}
    for number, one in partitions.items():
        amount = one["msgq_bytes"] + one["xmit_msgq_bytes"] + _bytes_in_flight(one)
        stuck = int(number) in stalled or (amount and one["leader"] in down)
        batches = _STUCK if stuck else amount // batch_bytes
        if batches and int(number) >= 0:
            waiting[int(number)] = batches
    return waiting


def _bytes_in_flight(one: Mapping[str, int]) -> int:
    """Estimate the bytes without an answer: librdkafka counts their records only, so take the average size so far."""
    return one["msgs_inflight"] * (one["txbytes"] // max(1, one["txmsgs"]))


def _linger_ms(config: Mapping[str, Any]) -> float:
    given = [value for name, value in config.items() if name in {"linger.ms", "queue.buffering.max.ms"}]
    try:
        return float(given[-1]) if given else _LINGER_MS
    except (TypeError, ValueError):  # the client refuses it, and names it
        return _LINGER_MS


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Split a total by weights into integers with the same sum; evenly where all weights are 0."""
    bounds = [0, *accumulate(weights)] if any(weights) else list(range(len(weights) + 1))
    cuts = [total * bound // bounds[-1] for bound in bounds]
    return [after - before for before, after in pairwise(cuts)]


def _both(own: Callable[[Any], None], theirs: Callable[[Any], None]) -> Callable[[Any], None]:
    if not callable(theirs):
        return theirs  # the client refuses it, and names it, before the start

    def both(event: Any) -> None:  # noqa: ANN401 - a text or an error, as librdkafka gives it
        own(event)
        theirs(event)

    return both


def _both_async(
    own: Callable[[Any], None], theirs: Callable[[Any], Awaitable[None]]
) -> Callable[[Any], Awaitable[None]]:
    async def both(event: Any) -> None:  # noqa: ANN401 - a text or an error, as librdkafka gives it
        own(event)
        await theirs(event)

    return both
