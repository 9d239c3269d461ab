"""`AIOGroupConsumer`: a group consumer whose calls are awaited."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from confluent_kafka.aio import AIOConsumer
from confluent_kafka.aio import _common as callbacks
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.consumer.consumer_errors import ArgumentError
from assignors.consumer.group_consumer import GroupConsumer


class AIOGroupConsumer(AIOConsumer):
    """A `confluent_kafka.aio.AIOConsumer` with custom assignors: a `GroupConsumer` whose calls are awaited.

        async with AIOGroupConsumer(config, assignors=[HRWAssignor()]) as consumer:
            await consumer.subscribe(["^flights"])
            messages = await consumer.consume(10_000, timeout=1.0)

    Contract:
    * Create and use it inside one running event loop, as the base class. Each call runs in a thread of the pool and
      keeps `GroupConsumer`'s contract; concurrent calls wait for each other.
    * Callbacks are coroutine functions, passed by keyword. `on_assign`, `on_revoke` and `on_lost` get this consumer,
      and may await its calls.
    * End it with `close`, or with an `async with` block.

    Args:
        consumer_conf: librdkafka's properties, as for `AIOConsumer`; it is not changed.
        max_workers: threads of the pool; a callback that awaits a call of this consumer needs a second one.
        executor: a pool to use instead.
        assignors: as for `GroupConsumer`.
        member: as for `GroupConsumer`.

    Raises:
        ConsumerError: no servers, no group, or a property that is set in another way here.
    """

    def __init__(
        self,
        consumer_conf: Mapping[str, Any],
        max_workers: int = 100,
        executor: Executor | None = None,
        *,
        assignors: Sequence[AbstractPartitionAssignor] | None = None,
        member: Mapping[str, Any] | None = None,
    ) -> None:
        # The base class's constructor is not called, because it creates a consumer of librdkafka.
        if executor is None and max_workers < 1:
            raise ArgumentError(f"max_workers={max_workers}, need 1 or more")
        loop = asyncio.get_running_loop()
        config = dict(consumer_conf)
        callbacks.wrap_common_callbacks(loop, config)
        callbacks.wrap_conf_callback(loop, config, "on_commit")
        consumer: Any = GroupConsumer(config, assignors=assignors, member=member)
        self._consumer = consumer  # has all methods of the base class's consumer
        self._closed = False
        self._owns_executor = executor is None
        self.executor = executor or ThreadPoolExecutor(max_workers, "group-consumer")
