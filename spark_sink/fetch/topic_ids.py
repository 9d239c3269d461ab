"""Topic ids (KIP-516), requested through a librdkafka consumer that is already open."""

import ctypes
from collections.abc import Collection, Mapping
from functools import cache

from confluent_kafka import KafkaError, cimpl

from spark_sink.errors import FetchError

_pointer, _text, _size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_ANY_OPERATION = 0  # RD_KAFKA_ADMIN_OP_ANY
_NO_ID = "A" * 22  # sixteen bytes of 0 in base64: the broker has no topic ids
_SIGNATURES: Mapping[str, tuple[type | None, list[type]]] = {
    "rd_kafka_AdminOptions_destroy": (None, [_pointer]),
    "rd_kafka_AdminOptions_new": (_pointer, [_pointer, ctypes.c_int]),
    "rd_kafka_AdminOptions_set_request_timeout": (ctypes.c_int, [_pointer, ctypes.c_int, _text, _size]),
    "rd_kafka_DescribeTopics": (None, [_pointer, _pointer, _pointer, _pointer]),
    "rd_kafka_DescribeTopics_result_topics": (_pointer, [_pointer, _pointer]),
    "rd_kafka_TopicCollection_destroy": (None, [_pointer]),
    "rd_kafka_TopicCollection_of_topic_names": (_pointer, [_pointer, _size]),
    "rd_kafka_TopicDescription_error": (_pointer, [_pointer]),
    "rd_kafka_TopicDescription_name": (_text, [_pointer]),
    "rd_kafka_TopicDescription_topic_id": (_pointer, [_pointer]),
    "rd_kafka_Uuid_base64str": (_text, [_pointer]),
    "rd_kafka_error_code": (ctypes.c_int, [_pointer]),
    "rd_kafka_event_DescribeTopics_result": (_pointer, [_pointer]),
    "rd_kafka_event_destroy": (None, [_pointer]),
    "rd_kafka_event_error": (ctypes.c_int, [_pointer]),
    "rd_kafka_event_error_string": (_text, [_pointer]),
    "rd_kafka_queue_destroy": (None, [_pointer]),
    "rd_kafka_queue_new": (_pointer, [_pointer]),
    "rd_kafka_queue_poll": (_pointer, [_pointer, ctypes.c_int]),
}


@cache
def _library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(cimpl.__file__))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def topic_ids(handle: int, topics: Collection[str], timeout_s: float) -> dict[str, str]:
    """Request the ids of topics, in one request.

    Args:
        handle: a `rd_kafka_t`.
        topics: their names.
        timeout_s: longest wait for the answer.

    Returns:
        Ids in plain base64 without padding; topics that are unknown now or have no id are left out.

    Raises:
        FetchError: no broker answered.
    """
    library = _library()
    names = (_text * len(topics))(*(name.encode() for name in topics))
    queue = library.rd_kafka_queue_new(handle)
    options = library.rd_kafka_AdminOptions_new(handle, _ANY_OPERATION)
    collection = library.rd_kafka_TopicCollection_of_topic_names(names, len(topics))
    milliseconds = int(timeout_s * 1000)
    event = None
    try:
        library.rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, None, 0)
        library.rd_kafka_DescribeTopics(handle, collection, options, queue)
        event = library.rd_kafka_queue_poll(queue, milliseconds + 1_000)
        if not event or library.rd_kafka_event_error(event):
            reason = library.rd_kafka_event_error_string(event).decode() if event else "no answer"
            raise FetchError(f"the ids of {len(topics)} topics could not be read within {timeout_s:g} s: {reason}")
        return dict(_described(library, event))
    finally:
        if event:
            library.rd_kafka_event_destroy(event)
        library.rd_kafka_TopicCollection_destroy(collection)
        library.rd_kafka_AdminOptions_destroy(options)
        library.rd_kafka_queue_destroy(queue)


def _described(library: ctypes.CDLL, event: int) -> list[tuple[str, str]]:
    count = _size()
    result = library.rd_kafka_event_DescribeTopics_result(event)
    described = library.rd_kafka_DescribeTopics_result_topics(result, ctypes.byref(count))
    found: list[tuple[str, str]] = []
    for one in (_pointer * count.value).from_address(described) if count.value else ():
        if library.rd_kafka_error_code(library.rd_kafka_TopicDescription_error(one)) != KafkaError.NO_ERROR:
            continue
        identity = library.rd_kafka_Uuid_base64str(library.rd_kafka_TopicDescription_topic_id(one)).decode()
        if identity != _NO_ID:
            found.append((library.rd_kafka_TopicDescription_name(one).decode(), identity))
    return found
