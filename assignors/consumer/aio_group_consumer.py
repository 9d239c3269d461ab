"""`AIOGroupConsumer`: a group consumer whose calls are awaited."""

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final

from confluent_kafka import Message
from confluent_kafka.aio import AIOConsumer
from confluent_kafka.aio import _common as callbacks
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from assignors.clients.received_traffic import ReceivedTraffic
from assignors.consumer.cancelled_reads import AwaitedTake
from assignors.consumer.consumer_errors import ArgumentError
from assignors.consumer.consumer_parts import ConsumerParts
from assignors.consumer.group_consumer import GroupConsumer

_LOOK_S: Final = 0.05  # seconds between two checks: inside a callback that began in between, this call need not wait


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
    * A cancelled `poll` or `consume` loses no record: the next call delivers those that its thread had taken. Until
      then no position and no commit is after them. Other calls wait until the thread has returned them, at most 0.3 s
      or until a running callback ends.
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
        if isinstance(max_workers, str | Sequence):
            raise ArgumentError(f"max_workers={max_workers!r}, need a number; give assignors by name: assignors=[...]")
        if executor is None and max_workers < 1:
            raise ArgumentError(f"max_workers={max_workers}, need 1 or more")
        loop = asyncio.get_running_loop()
        config = dict(consumer_conf)
        callbacks.wrap_common_callbacks(loop, config)
        callbacks.wrap_conf_callback(loop, config, "on_commit")
        for name, wrapped in config.items():
            if wrapped is not consumer_conf[name] and callable(wrapped):
                config[name] = _letting_in(self, wrapped)
        consumer: Any = GroupConsumer(config, assignors=assignors, member=member)
        self._consumer = consumer  # has all methods of the base class's consumer
        self._kafka_azimuth = _AwaitedCalls(consumer._kafka_azimuth)  # noqa: SLF001 -- of this package's class
        self._closed = False
        self._owns_executor = executor is None
        self.executor = executor or ThreadPoolExecutor(max_workers, "group-consumer")

    async def poll(self, timeout: float = -1) -> Message | None:  # noqa: ASYNC109 -- as confluent-kafka has it
        """Return one record, or an error as a message; None if there is none in time (-1: no limit)."""
        found = await _take(self, 1, timeout)
        return found[0] if found else None

    async def consume(
        self,
        num_messages: int = 1,
        timeout: float = -1,  # noqa: ASYNC109 -- as confluent-kafka has it
    ) -> list[Message]:
        """Return at most `num_messages` records; fewer if the time is up, or if partitions change."""
        return await _take(self, num_messages, timeout)

    async def close(self) -> None:
        """Leave the group, and end; errors as those of `GroupConsumer.close`, refused in a callback as there."""
        try:
            await self._call(self._consumer.close)
        finally:
            # The base class ends the pool after a refusal, too: it would wait for the callback that waits for it.
            if self._kafka_azimuth.parts.closed:
                self._closed = True
                if self._owns_executor:
                    # A callback that closes the consumer runs in a thread of the pool: it must not wait for itself.
                    wait = not callbacks.ReentryContext.current_id()
                    await asyncio.get_running_loop().run_in_executor(None, self.executor.shutdown, wait)

    def _wrap_callback(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:  # noqa: ANN401 -- as the base class
        return _letting_in(self, super()._wrap_callback(*args, **kwargs))

    async def traffic(self) -> ReceivedTraffic:
        """Return what was received so far, as `GroupConsumer.traffic`."""
        found: ReceivedTraffic = await self._call(self._kafka_azimuth.parts.received.traffic)
        return found

    async def _call(self, blocking_task: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- any call's
        await self._kafka_azimuth.settle()
        return await super()._call(blocking_task, *args, **kwargs)


class _AwaitedCalls:
    """The calls that were cancelled, whose records go back to the consumer before the next call.

    Args:
        parts: of the consumer whose calls are awaited.
    """

    def __init__(self, parts: ConsumerParts) -> None:
        self.parts = parts
        self._unsettled: set[AwaitedTake] = set()

    def give_up(self, take: AwaitedTake) -> None:
        """End a cancelled call."""
        self._unsettled.add(take)
        take.give_up()

    async def settle(self) -> None:
        """Wait until the records of the cancelled calls are back."""
        while waits_for := self._to_be_settled():
            await asyncio.wait([asyncio.wrap_future(one.settled) for one in waits_for], timeout=_LOOK_S)
            self._unsettled = {one for one in self._unsettled if not one.settled.done()}

    def _to_be_settled(self) -> list[AwaitedTake]:
        """The cancelled calls before this one; in a callback those of the callback, because others may wait for it."""
        identity, lock = callbacks.ReentryContext.current_id(), callbacks.ReentryContext.current_lock()
        inside = identity and self.parts.gate.runs_callback(identity)
        return [one for one in self._unsettled if not inside or one.made_in is lock]


def _letting_in(owner: AIOGroupConsumer, callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a thread that calls this one, and lets the calls that it makes enter the gate."""
    consumer = weakref.ref(owner)  # a dropped consumer ends

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- any callback's
        if (now := consumer()) is None:
            return callback(*args, **kwargs)
        gate = now._kafka_azimuth.parts.gate  # noqa: SLF001 -- of this module's class
        del now
        with gate.callback():
            return callback(*args, **kwargs)

    return call


async def _take(consumer: AIOGroupConsumer, most: int, timeout: float) -> list[Message]:  # noqa: ASYNC109 -- as above
    while True:
        found = await _take_once(consumer, most, timeout)
        # A concurrent seek or revocation may have dropped all records of a call without a limit.
        if found or timeout >= 0 or not most:
            return found


async def _take_once(consumer: AIOGroupConsumer, most: int, timeout: float) -> list[Message]:  # noqa: ASYNC109 -- as above
    calls = consumer._kafka_azimuth  # noqa: SLF001 -- as above
    take = calls.parts.awaited_take(most, timeout)
    try:
        await consumer._call(take.run)  # noqa: SLF001 -- as above
    except Exception:
        raise  # of the call itself, which has returned its records
    except BaseException:  # cancelled
        calls.give_up(take)
        raise
    return take.hand_over()
