"""A consumer on librdkafka's C interface, because confluent-kafka's Python layer handles one record at a time.

confluent-kafka creates an object for every record and makes a call for every attribute. Of 7 s for 3.4 million records,
this took 5. This binding uses the library that confluent-kafka has loaded. It returns a batch of addresses, which
`message_copy` copies into Arrow column by column. `rd_kafka_message_t` is part of librdkafka's public and stable
interface (rdkafka.h). All other requests go through confluent-kafka.
"""

import ctypes
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from spark_sink.errors import FetchError
from spark_sink.fetch.librdkafka_symbols import Addresses, library
from spark_sink.fetch.message_copy import destroy
from spark_sink.fetch.topic_ids import topic_ids
from spark_sink.ranges.batch_offset import Range

_CONSUMER = 1
_NO_CONSUMER_CLOSE = 0x8


class Messages:
    """Records in librdkafka's memory; the end of the block frees them."""

    def __init__(self, addresses: Addresses) -> None:
        self.addresses = addresses

    def __enter__(self) -> Addresses:
        return self.addresses

    def __exit__(self, *_: object) -> None:
        destroy(self.addresses)


class NativeConsumer:
    """A consumer of librdkafka without a group's membership; not safe for threads.

    Raises:
        FetchError: librdkafka refuses a property.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self._library = library()
        self._handle: int | None = _open(self._library, config)
        self._library.rd_kafka_poll_set_consumer(self._handle)
        self._queue = self._library.rd_kafka_queue_get_consumer(self._handle)

    def assign(self, pieces: Iterable[Range]) -> None:
        """Read only the partitions of these ranges, each from the range's beginning."""
        with _Partitions(pieces) as partitions:
            self._check(self._library.rd_kafka_assign(self._handle, partitions))

    def unassign(self) -> None:
        """Stop reading all partitions, and drop the fetched records."""
        self._check(self._library.rd_kafka_assign(self._handle, None))

    def add(self, pieces: Iterable[Range]) -> None:
        """Read the partitions of these ranges in addition."""
        with _Partitions(pieces) as partitions:
            self._library.rd_kafka_error_destroy(self._library.rd_kafka_incremental_assign(self._handle, partitions))

    def remove(self, pieces: Iterable[Range]) -> None:
        """Stop reading the partitions of these ranges."""
        with _Partitions(pieces) as partitions:
            self._library.rd_kafka_error_destroy(self._library.rd_kafka_incremental_unassign(self._handle, partitions))

    def consume(self, most: int, wait_s: float) -> Messages:
        """Take at most `most` records and events; return when it has them, or after `wait_s` seconds."""
        addresses = np.empty(most, np.uint64)
        count = self._library.rd_kafka_consume_batch_queue(self._queue, int(wait_s * 1000), addresses.ctypes.data, most)
        return Messages(addresses[: max(count, 0)])

    def topic_ids(self, topics: Collection[str], timeout_s: float) -> dict[str, str]:
        """Return ids of topics (KIP-516) by name, without topics that are unknown now or have no id.

        Raises:
            FetchError: no broker answered in time.
        """
        assert self._handle is not None  # noqa: S101 -- called between opening and closing
        return topic_ids(self._handle, topics, timeout_s)

    def close(self) -> None:
        """Close the consumer."""
        if self._handle is not None:
            self._library.rd_kafka_queue_destroy(self._queue)
            self._library.rd_kafka_destroy_flags(self._handle, _NO_CONSUMER_CLOSE)
            self._handle = None

    def _check(self, code: int) -> None:
        if code:
            raise FetchError(f"librdkafka refuses the assignment: {error_text(code)}")


class _Partitions:
    """A list of partitions with offsets, in librdkafka's form."""

    def __init__(self, pieces: Iterable[Range]) -> None:
        self._library = library()
        self._list = self._library.rd_kafka_topic_partition_list_new(8)
        for one in pieces:
            name = one.topic.encode()
            self._library.rd_kafka_topic_partition_list_add(self._list, name, one.partition)
            self._library.rd_kafka_topic_partition_list_set_offset(self._list, name, one.partition, one.begin)

    def __enter__(self) -> int:
        return int(self._list)

    def __exit__(self, *_: object) -> None:
        self._library.rd_kafka_topic_partition_list_destroy(self._list)


def check_properties(config: Mapping[str, object]) -> None:
    """Check the values of properties without a client.

    Raises:
        FetchError: librdkafka refuses a property.
    """
    found = library()
    found.rd_kafka_conf_destroy(_conf(found, config))


def _conf(found: ctypes.CDLL, config: Mapping[str, object]) -> int:
    reason = ctypes.create_string_buffer(512)
    settings = found.rd_kafka_conf_new()
    for name, value in config.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if found.rd_kafka_conf_set(settings, name.encode(), text.encode(), reason, len(reason)):
            found.rd_kafka_conf_destroy(settings)
            raise FetchError(f"kafka.{name}: {reason.value.decode()}")
    return int(settings)


def _open(found: ctypes.CDLL, config: Mapping[str, object]) -> int:
    reason = ctypes.create_string_buffer(512)
    settings = _conf(found, config)
    handle = found.rd_kafka_new(_CONSUMER, settings, reason, len(reason))
    if not handle:
        found.rd_kafka_conf_destroy(settings)
        raise FetchError(f"no consumer could be made: {reason.value.decode()}")
    return int(handle)


def error_text(code: int) -> str:
    """Return librdkafka's description of an error code."""
    return bytes(library().rd_kafka_err2str(code)).decode()


def topic_name(topic: int) -> str:
    """Return the name of the topic at that address; empty if an event belongs to no topic."""
    return bytes(library(quick=True).rd_kafka_topic_name(topic)).decode() if topic else ""
