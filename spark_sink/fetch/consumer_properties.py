"""The properties of a task's consumer."""

from collections.abc import Mapping

from spark_sink.kafka.client_property_names import librdkafka_config

_TUNED: dict[str, str | int | float | bool] = {
    # A new partition joins the next fetch, so a fetch that waits for records delays the other partitions.
    "fetch.wait.max.ms": 10,
    # librdkafka stops for this long (default 1000) whenever its queue is full.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 131_072,
}
_SMALLEST_FETCH, _LARGEST_FETCH = 64 * 1024, 2_000_000
_RECORD_BYTES = 1_000  # an estimate, used only for the size of a fetch


def consumer_config(kafka: Mapping[str, str], longest: int) -> dict[str, str | int | float | bool]:
    """The properties of a task's consumer.

    Args:
        kafka: the user's client properties, with Kafka's names.
        longest: offsets of the longest range; a fetch requests little more than that, because records beyond the range
            are dropped.

    Returns:
        librdkafka's properties; the user's properties override those set here.
    """
    fetch = _SMALLEST_FETCH
    while fetch < min(longest * _RECORD_BYTES, _LARGEST_FETCH):
        fetch *= 4
    return {
        **_TUNED,
        "fetch.message.max.bytes": min(fetch, _LARGEST_FETCH),
        **librdkafka_config(kafka),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
