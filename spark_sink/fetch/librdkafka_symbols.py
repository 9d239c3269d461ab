"""Functions and the message layout of librdkafka's C interface, in the library that confluent-kafka has loaded."""

import ctypes
from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt
from confluent_kafka import cimpl

from spark_sink.errors import FetchError

Addresses = npt.NDArray[np.uint64]

# rd_kafka_message_t of rdkafka.h, on 64-bit machines. The struct ends with the application's own pointer, which is
# unused here: in a copy, the record's timestamp takes its place.
MESSAGE = np.dtype(
    {
        "names": ["error", "topic", "partition", "value", "value_bytes", "key", "key_bytes", "offset", "timestamp"],
        "formats": ["i4", "u8", "i4", "u8", "u8", "u8", "u8", "i8", "i8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 64],
        "itemsize": 72,
    }
)

_pointer, _text, _size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_SIGNATURES: Mapping[str, tuple[type | None, list[type]]] = {
    "rd_kafka_assign": (ctypes.c_int, [_pointer, _pointer]),
    "rd_kafka_conf_destroy": (None, [_pointer]),
    "rd_kafka_conf_new": (_pointer, []),
    "rd_kafka_conf_set": (ctypes.c_int, [_pointer, _text, _text, _text, _size]),
    "rd_kafka_consume_batch_queue": (ctypes.c_ssize_t, [_pointer, ctypes.c_int, _pointer, _size]),
    "rd_kafka_destroy_flags": (None, [_pointer, ctypes.c_int]),
    "rd_kafka_err2str": (_text, [ctypes.c_int]),
    "rd_kafka_header_cnt": (_size, [_pointer]),
    "rd_kafka_header_get_all": (ctypes.c_int, [_pointer, _size, _pointer, _pointer, _pointer]),
    "rd_kafka_incremental_assign": (_pointer, [_pointer, _pointer]),
    "rd_kafka_incremental_unassign": (_pointer, [_pointer, _pointer]),
    "rd_kafka_error_destroy": (None, [_pointer]),
    "rd_kafka_message_broker_id": (ctypes.c_int32, [_pointer]),
    "rd_kafka_message_destroy": (None, [_pointer]),
    "rd_kafka_message_headers": (ctypes.c_int, [_pointer, _pointer]),
    "rd_kafka_message_timestamp": (ctypes.c_int64, [_pointer, _pointer]),
    "rd_kafka_new": (_pointer, [ctypes.c_int, _pointer, _text, _size]),
    "rd_kafka_poll_set_consumer": (ctypes.c_int, [_pointer]),
    "rd_kafka_queue_destroy": (None, [_pointer]),
    "rd_kafka_queue_get_consumer": (_pointer, [_pointer]),
    "rd_kafka_topic_name": (_text, [_pointer]),
    "rd_kafka_topic_partition_list_add": (_pointer, [_pointer, _text, ctypes.c_int32]),
    "rd_kafka_topic_partition_list_destroy": (None, [_pointer]),
    "rd_kafka_topic_partition_list_new": (_pointer, [ctypes.c_int]),
    "rd_kafka_topic_partition_list_set_offset": (ctypes.c_int, [_pointer, _text, ctypes.c_int32, ctypes.c_int64]),
}


def address_of(name: str) -> int:
    """Return the address of a function, for compiled code.

    Raises:
        FetchError: as `library`.
    """
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0


@cache
def library(*, quick: bool = False) -> ctypes.CDLL:
    """Return librdkafka as confluent-kafka loaded it.

    Args:
        quick: for calls that return immediately: keeping the interpreter's lock halves the cost of a call.

    Raises:
        FetchError: this build of confluent-kafka does not export the library's symbols.
    """
    found = (ctypes.PyDLL if quick else ctypes.CDLL)(str(cimpl.__file__))
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise FetchError(
            f"confluent-kafka shows no librdkafka ({error}): install its wheel from the package index"
        ) from error
    return found
