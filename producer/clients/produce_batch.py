"""Chooses the partition of each message of a batch.

confluent-kafka's `produce_batch` (2.16.1) ignores the partition of a message and takes one for the whole call. So
messages are first grouped by partition, and keep their order within a group.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from confluent_kafka import KafkaError

from assignors.clients import whole_number
from producer.decisions.record_bytes import check_header_names, key_bytes, sent_bytes
from producer.decisions.sticky import RECORD_OVERHEAD
from producer.partitioning.partition_of_record import TopicPartitioner
from producer.partitioning.produce_interpreted import Destinations

Messages = list[dict[str, Any]]
Switch = Callable[[str, Destinations], None]
_ROOM: Final = 100_000  # librdkafka's default of `queue.buffering.max.messages`


def are_valid(messages: object) -> bool:
    """Return whether confluent-kafka accepts every message; if not, it raises before it sends any.

    Raises:
        ValueError: a header's name cannot be encoded; confluent-kafka would end the process.
    """
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            check_header_names(message.get("headers"))
    return isinstance(messages, list) and all(
        isinstance(message, dict)
        and isinstance(message.get("value"), str | bytes | None)
        and isinstance(message.get("key"), str | bytes | None)
        and isinstance(message.get("partition"), int | None)
        and message.get("timestamp") is None
        and _are_headers(message.get("headers"))
        for message in messages
    )


def _are_headers(headers: object) -> bool:
    if isinstance(headers, dict):
        return all(isinstance(value, str | bytes | None) for value in headers.values())
    if isinstance(headers, list):
        pair = 2
        return all(
            isinstance(one, tuple) and len(one) == pair and isinstance(one[1], str | bytes | None) for one in headers
        )
    return headers is None


def group(
    partitioner: TopicPartitioner | None,
    messages: Sequence[dict[str, Any]],
    switch: Switch,
    groups: dict[int, Messages],
) -> None:
    """Choose a partition for each message. Does not count, because the client may refuse some, and counts never fall.

    Args:
        partitioner: partitioner of the topic; None if its leaders are not known, so that librdkafka chooses (-1).
        messages: in the format of `produce_batch`; a message's own `partition` is kept.
        switch: called when a sticky run is full.
        groups: gets the messages by partition, in order.

    Raises:
        UnicodeEncodeError: a text cannot be written as UTF-8.
    """
    run = 0
    for message in messages:
        partition = choose(partitioner, message)
        groups.setdefault(partition, []).append(message)
        size = size_of(message)
        if partitioner is None or partition != partitioner.destinations.partition:
            continue
        if not has_own_partition(message) and _is_unkeyed(partitioner, message.get("key")):
            destinations = partitioner.destinations
            run += size or RECORD_OVERHEAD
            if destinations.unkeyed.of(partition).bytes + run >= destinations.switch_at:
                switch(partitioner.topic, destinations)
                run = 0


def longest_queue(config: Mapping[str, Any]) -> int | None:
    """Return the number of records that the client's queue holds; None if there is no such limit."""
    return whole_number(config.get("queue.buffering.max.messages"), _ROOM) or None


def in_runs(messages: Messages, groups: Mapping[int, Messages], room: int) -> Iterator[tuple[int, Messages]]:
    """Return the messages in an order in which the client queues the first ones of the list if its queue gets full.

    Args:
        messages: those of one call.
        groups: the same messages by partition.
        room: number of messages that surely fit into the queue.

    Returns:
        Partition and messages of each call of the client: the first `room` messages by partition, then the others in
        the order of the list.
    """
    if len(messages) <= room:
        yield from groups.items()
        return
    places = {id(message): partition for partition, batch in groups.items() for message in batch}
    fitting: dict[int, Messages] = {}
    for message in messages[:room]:
        fitting.setdefault(places[id(message)], []).append(message)
    yield from fitting.items()
    for partition, run in groupby(messages[room:], lambda one: places[id(one)]):
        yield partition, list(run)


def full_queue(messages: Messages) -> KafkaError | None:
    """Return the error of the first message that found no room in the client's queue; None if there is none."""
    errors = (message["_error"] for message in messages if "_error" in message)
    return next((error for error in errors if error.code() == KafkaError._QUEUE_FULL), None)  # noqa: SLF001 - its constant


def without_gaps(runs: Iterable[tuple[bool, Iterable[dict[str, Any]]]]) -> Iterator[tuple[bool, Messages]]:
    """Return the runs of one partition until the client's queue is full; the messages after that get its error.

    A later and smaller message may still fit, and would overtake a message of the same key that the application
    sends again.
    """
    refused = None
    for kind, run in runs:
        messages = list(run)
        if refused is None:
            yield kind, messages
            refused = full_queue(messages)
        else:
            for message in messages:
                message["_error"] = refused


def forget_errors(messages: Messages) -> None:
    """Remove errors of an earlier call: confluent-kafka leaves them on a message that is sent again and queued."""
    for message in messages:
        message.pop("_error", None)


def has_own_partition(message: Mapping[str, Any]) -> bool:
    """Return whether the message itself names its partition."""
    return message.get("partition") not in {None, -1}


def is_unplaced(message: Mapping[str, Any]) -> bool:
    """Return whether the client does not know the partition of a message that it got."""
    error = message.get("_error")
    return error is not None and error.code() == KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - its constant


def is_misplaced(message: Mapping[str, Any]) -> bool:
    """Return whether the client does not know the partition and the message did not set it."""
    return is_unplaced(message) and not has_own_partition(message)


def choose(partitioner: TopicPartitioner | None, message: dict[str, Any]) -> int:
    """Choose a message's partition: its own, else by its key; -1 without a partitioner."""
    if has_own_partition(message):
        return int(message["partition"])
    if partitioner is None:
        return -1
    key = message.get("key")
    if partitioner.composed:
        return partitioner.choose(None if key is None else key_bytes(key))
    if _is_unkeyed(partitioner, key):
        return partitioner.destinations.partition
    return partitioner.destinations.keyed_partition(key_bytes(key))


def _is_unkeyed(partitioner: TopicPartitioner, key: str | bytes | None) -> bool:
    return key is None or len(key) < partitioner.destinations.shortest_key


def count(partitioner: TopicPartitioner, message: dict[str, Any], partition: int) -> None:
    """Count a message of a partition."""
    size = size_of(message)
    if has_own_partition(message):
        partitioner.count_explicit(partition, size)
    elif _is_unkeyed(partitioner, message.get("key")):
        partitioner.destinations.unkeyed.add(partition, size)
    else:
        partitioner.destinations.keyed.add(partition, size)


def size_of(message: Mapping[str, Any]) -> int:
    """Measure key and value in bytes; `produce_batch` of confluent-kafka (2.16.1) drops the headers of a message."""
    return byte_length(message.get("value")) + byte_length(message.get("key"))


def byte_length(data: str | bytes | None) -> int:
    """Return the length of a key or a value on the wire, in bytes; None is 0."""
    return len(sent_bytes(data) or b"")
