"""Copies records out of librdkafka's memory in Python: a call for each record, but no Python step for each value.

`copy_compiled.pyx` has the same surface, with C loops in place of these calls and casts.

Arrow's binary views hold (length, buffer, offset) for each value; casting them to plain binary copies every value in
C++. The buffers here are windows over the memory of the process; Arrow reads only the values in them.
"""

import ctypes
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_sink.fetch.librdkafka_symbols import MESSAGE, Addresses, library

# Arrow's view holds values of up to 12 bytes in the view itself, longer ones in a buffer (columnar format 1.4).
_VIEW = np.dtype([("length", "<i4"), ("prefix", "<u4"), ("buffer", "<i4"), ("offset", "<i4")])
_INLINE = 12
_WINDOW_BITS = 30  # a value begins in a window's first GiB, so offset + length fits an int32
_WINDOW_BYTES = 2**31 - 1
_COLUMNS = np.arange(_INLINE)


def records(addresses: Addresses) -> npt.NDArray[np.void]:
    """Copy the message structs of records and events, shape (N,), with the layout `MESSAGE`.

    The timestamp is in milliseconds since 1970; -1 for a record without one, and for an event.
    """
    found = structs(addresses, MESSAGE).copy()
    read = library(quick=True).rd_kafka_message_timestamp
    found["timestamp"] = np.fromiter(map(read, addresses.tolist(), repeat(None)), np.int64, len(addresses))
    return found


def destroy(addresses: Addresses) -> None:
    """Free records and events."""
    for _none in map(library(quick=True).rd_kafka_message_destroy, addresses.tolist()):
        pass


def headers(addresses: Addresses, kind: pa.ListType) -> pa.Array:
    """Copy the headers of records into lists of that type, in order; null for a record without headers.

    Bytes of a name that are not UTF-8 become U+FFFD.
    """
    pairs = [_headers(address) for address in addresses.tolist()]
    found = [None if one is None else [{"key": key, "value": value} for key, value in one] for one in pairs]
    return pa.array(found, kind)


def binary(addresses: Addresses, lengths: npt.NDArray[np.integer]) -> pa.Array:
    """Copy values into a binary array.

    Args:
        addresses: of the first byte of each value, shape (N,); 0 stands for a null.
        lengths: bytes of each value, shape (N,), below 2**30; together below 2**31.

    Returns:
        A pyarrow.BinaryArray of N values that owns its memory.
    """
    views = np.zeros(len(addresses), _VIEW)
    views["length"] = lengths
    windows, views["buffer"] = _windows(addresses)
    views["offset"] = addresses & np.uint64((1 << _WINDOW_BITS) - 1)
    _write_inline(views, addresses)
    valid = addresses != 0
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [mask, pa.py_buffer(views), *(pa.foreign_buffer(base, _WINDOW_BYTES) for base in windows)]
    return pa.Array.from_buffers(pa.binary_view(), len(views), buffers).cast(pa.binary())


def structs(addresses: Addresses, layout: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Copy C structs into an array of that layout, shape (N,)."""
    lengths = np.full(len(addresses), layout.itemsize)
    if not len(addresses):
        return np.empty(0, layout)
    return np.frombuffer(binary(addresses, lengths).buffers()[2], layout, len(addresses))


def _windows(addresses: Addresses) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Return the windows that contain the addresses, and each address's window."""
    numbers = addresses >> np.uint64(_WINDOW_BITS)
    # There are few windows, in long runs: comparing with each window is cheaper than sorting all addresses.
    found = np.unique(numbers[np.flatnonzero(np.diff(numbers, prepend=np.uint64(2**34)))])
    return [int(one) << _WINDOW_BITS for one in found], np.searchsorted(found, numbers).astype(np.int32)


def _write_inline(views: npt.NDArray[np.void], addresses: Addresses) -> None:
    lengths = views["length"]
    short = np.flatnonzero(lengths <= _INLINE)
    if not len(short):
        return
    content = views.view(np.uint8).reshape(len(views), _VIEW.itemsize)
    content[short, 4:] = 0
    some = short[(lengths[short] > 0) & (addresses[short] != 0)]
    if not len(some):
        return
    at, length = addresses[some], lengths[some][:, None]
    first, last = int(at.min()), int(at.max()) + _INLINE
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (last - first)).from_address(first))
    # A byte after the end of a value may be outside the process's memory, so its last byte is read again and blanked.
    found = memory[(at - np.uint64(first)).astype(np.int64)[:, None] + np.minimum(_COLUMNS, length - 1)]
    found[length <= _COLUMNS] = 0
    content[some, 4:] = found


def _headers(address: int) -> list[tuple[str, bytes | None]] | None:
    found = library(quick=True)
    handle, name = ctypes.c_void_p(), ctypes.c_char_p()
    value, size = ctypes.c_void_p(), ctypes.c_size_t()
    if found.rd_kafka_message_headers(address, ctypes.byref(handle)):
        return None
    pairs: list[tuple[str, bytes | None]] = []
    pointers = ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
    while not found.rd_kafka_header_get_all(handle, len(pairs), *pointers):
        content = ctypes.string_at(value.value or 0, size.value) if value.value is not None else None
        pairs.append(((name.value or b"").decode("utf-8", "replace"), content))
    return pairs
