"""The parts of an `AZAwareAIOProducer`, in one object: an attribute of a subclass cannot replace one of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from producer.clients.aio_buffer import BufferInTurn
from producer.clients.client_statistics import Statistics
from producer.clients.delivery_reports import kind_of
from producer.clients.leader_watcher import LeaderWatcher
from producer.clients.produce_batch import choose as choose_partition
from producer.clients.produce_batch import count as count_message
from producer.clients.produce_batch import size_of
from producer.decisions.producer_settings import ZonePolicy
from producer.metadata_requests import Lister, Topology
from producer.partitioning.produce_interpreted import Kind
from producer.partitioning.topics_in_use import TopicsInUse
from producer.traffic_cost import Count


class ChosenPartition(int):
    """A partition that this class chose; the application's is a plain number."""


class Turn:
    """The calls that wait for the first reading of a topic's leaders, in call order."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.calls = 0


class EarlierCalls(Protocol):
    """The calls of `produce` before they reach the parts, as those that await a serializer."""

    @property
    def calls(self) -> int:
        """The number of calls whose records the base class does not have yet."""

    async def hand_over(self) -> None:
        """Wait until the base class has the records of all calls so far."""


class AIOProducerParts:
    """What the methods of an `AZAwareAIOProducer` use.

    Args:
        policy: of the producer.
        counts_inside: whether records are counted inside librdkafka.
        topology: reads leaders and racks.
        client: returns what the leaders are read with.
        refresh_s: as for `AZAwareProducer`.
        drain: polls for an application that does not poll.

    Attributes:
        counts_queued: whether records count when the client has queued them.
        waiting: the calls that wait for leaders, by topic.
        earlier: the calls of a producer that does something before, with the waiting ones; None for others.
        buffer: hands over the base class's buffer; set when the base class exists.
    """

    buffer: BufferInTurn

    def __init__(  # noqa: PLR0913 - each is named at the call
        self,
        policy: ZonePolicy,
        *,
        counts_inside: bool,
        topology: Topology,
        client: Callable[[], Lister | None],
        refresh_s: float,
        drain: Callable[[], bool],
    ) -> None:
        self._futures_count = policy.counts_deliveries and not counts_inside
        self.counts_queued = not policy.counts_deliveries and not counts_inside
        # A record gets its partition long before the client queues it, so partitioners count for their runs only.
        self.topics_in_use = TopicsInUse(replace(policy, counts_deliveries=True))
        self.waiting: dict[str, Turn] = {}
        self.earlier: EarlierCalls | None = None
        self.topology = topology
        self.watcher = LeaderWatcher(client, self.topics_in_use, topology, refresh_s=refresh_s, drain=drain)
        self.statistics = Statistics(self.topics_in_use, self.watcher, topology)

    async def produce_now(
        self,
        send: Callable[..., Awaitable["asyncio.Future[Any]"]],
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None,
        *args: Any,  # noqa: ANN401 - as the base class types it
        **kwargs: Any,  # noqa: ANN401 - as the base class types it
    ) -> "asyncio.Future[Any]":
        """Send a record by the base class's `produce`, to the partition of its choice."""
        own = kwargs.get("partition", -1)
        message = {"value": value, "key": key, "partition": own}
        size = size_of(message)
        kind = kind_of(key, self.topics_in_use.policy, explicit=own != -1)
        partitioner = self.topics_in_use.partitioners.get(topic)
        if partitioner is None:
            future = await send(topic, value, key, *args, **kwargs)
            if own != -1:
                self.watcher.load_later(topic)
            return self._counted(future, topic, kind, size)
        destinations = partitioner.destinations
        chosen = choose_partition(partitioner, message)
        # For the run, and first: the base class may await a whole batch here, and other tasks must see the bytes.
        count_message(partitioner, message, chosen)
        if destinations.is_full():
            self.topics_in_use.advance(topic, destinations)
        elif not size and chosen == destinations.partition:
            self.topics_in_use.advance_after_empty(topic, destinations)
        future = await send(
            topic, value, key, *args, **{**kwargs, "partition": chosen if own != -1 else ChosenPartition(chosen)}
        )
        return self._counted(future, topic, kind, size)

    def _counted(self, future: "asyncio.Future[Any]", topic: str, kind: Kind, size: int) -> "asyncio.Future[Any]":
        """Count a record at its delivery, if futures count deliveries."""

        def count_delivered(done: "asyncio.Future[Any]") -> None:
            if not done.cancelled() and done.exception() is None:
                self.topics_in_use.count_delivered(topic, done.result().partition(), kind, Count(1, size))

        if self._futures_count:
            future.add_done_callback(count_delivered)
        return future

    def waiting_calls(self) -> int:
        """Count the calls of `produce` whose records the base class does not have yet."""
        return sum(turn.calls for turn in self.waiting.values()) if self.earlier is None else self.earlier.calls

    async def hand_over(self) -> None:
        """Wait until the base class has the records of all calls of `produce` so far."""
        if self.earlier is not None:
            await self.earlier.hand_over()
            return
        for turn in list(self.waiting.values()):
            async with turn.lock:  # a lock of asyncio is taken in the order of the calls
                pass
