"""The buffer of the asyncio client, handed over to librdkafka in the order of the flushes."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress

from confluent_kafka import Producer
from confluent_kafka.aio.producer._message_batch import MessageBatch
from confluent_kafka.aio.producer._producer_batch_processor import ProducerBatchManager

from producer.clients.produce_batch import Messages


class BufferInTurn:
    """Hands over the base class's buffer to the client, one flush after another.

    The base class (2.16.1) empties its buffer first, and then awaits one call of the client for each partition. The
    bare class has one partition there, -1. With several, another flush would overtake the records of a later
    partition, a cancelled flush would lose them, and `flush` would return before they are sent. Here one call of the
    executor takes all batches that wait: a task for each flush, or a call for each partition, costs much of the rate.

    Args:
        buffer: the base class's.
        client: the base class's, whose callbacks are called.
        executor: runs the calls of the client.
        send: sends the messages of a topic to a partition; sets `_error` in those that the client refuses.
        refuse: ends the futures of messages with an `_error`.
    """

    def __init__(
        self,
        buffer: ProducerBatchManager,
        client: Producer,
        executor: Executor,
        *,
        send: Callable[[str, Messages, int], object],
        refuse: Callable[[Messages], None],
    ) -> None:
        self._buffer = buffer
        self._client = client
        self._executor = executor
        self._send = send
        self._refuse = refuse
        self._batches: deque[MessageBatch] = deque()
        self._lock = threading.Lock()  # only its owner takes batches and sends them

    async def flush(self, target_topic: str | None = None) -> None:
        """Hand over the buffer, or one topic's records; if the caller is cancelled, this continues without it."""
        batches = self._buffer.create_batches(target_topic)
        if not batches:
            return
        if target_topic is None:
            self._buffer.clear_buffer()
        else:
            self._buffer._clear_topic_from_buffer(target_topic)  # noqa: SLF001 - no public name removes a topic
        self._batches.extend(batches)
        try:
            call = asyncio.get_running_loop().run_in_executor(self._executor, self._send_and_poll)
        except RuntimeError as error:  # the producer has been closed
            self._take_back(batches, error)
            raise
        try:
            await call
        except asyncio.CancelledError:
            with suppress(RuntimeError):  # closed; nothing waits then
                asyncio.get_running_loop().run_in_executor(self._executor, self._send_and_poll)  # the first may not run
            raise

    async def flush_all(self) -> None:
        """Hand over the buffer, and wait for the flushes before."""
        await self.flush()  # takes the records at once: during `wait` another flush could take them
        await self.wait()

    async def wait(self) -> None:
        """Wait until the client has the records of all flushes so far."""
        if self._batches or self._lock.locked():
            await asyncio.to_thread(self._send_batches)  # the executor's threads may all wait for deliveries

    def _send_and_poll(self) -> None:
        self._send_batches()
        self._client.poll(0)  # without the lock: a callback's coroutine may send records, and this waits for it

    def _send_batches(self) -> None:
        """Send all batches that wait; returns when those of other threads are sent, too."""
        failure = None
        with self._lock:
            while self._batches:
                batch = self._batches.popleft()
                messages = list(batch.messages)
                try:
                    self._send(batch.topic, messages, batch.partition)
                except Exception as error:  # noqa: BLE001 - its futures and one caller get it, after the other batches
                    failure = error
                    self._fail(batch, error)
                else:
                    self._refuse(messages)
        if failure is not None:
            raise failure

    def _take_back(self, batches: list[MessageBatch], error: Exception) -> None:
        with self._lock:
            for batch in batches:
                with suppress(ValueError):  # an earlier call has sent it
                    self._batches.remove(batch)
                    self._fail(batch, error)

    def _fail(self, batch: MessageBatch, error: Exception) -> None:
        self._buffer._handle_batch_failure(error, batch.futures)  # noqa: SLF001 - ends those that have not ended
