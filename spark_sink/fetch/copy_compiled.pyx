# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Copying compiled: the surface of `copy_interpreted.py`, which documents each part, without the interpreter's lock."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset, strlen

import numpy as np
import pyarrow as pa

from spark_sink.fetch.librdkafka_symbols import MESSAGE, address_of

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define prefetch(address) __builtin_prefetch((const void *)(address))
    #else
    #define prefetch(address) ((void)(address))
    #endif
    """
    void prefetch(uint64_t address) noexcept nogil

ctypedef int64_t (*Timestamp)(const void*, void*) noexcept nogil
ctypedef void (*Destroy)(void*) noexcept nogil
ctypedef int (*Headers)(const void*, void**) noexcept nogil
ctypedef size_t (*HeaderCount)(const void*) noexcept nogil
ctypedef int (*HeaderAt)(const void*, size_t, const char**, const void**, size_t*) noexcept nogil

# Records are spread over memory: the processor loads these many ahead of the loop.
cdef enum:
    AHEAD = 8

cdef size_t TIMESTAMP_AT = MESSAGE.fields["timestamp"][1]
cdef size_t MESSAGE_BYTES = MESSAGE.itemsize

# Looked up when this module is imported, so that a confluent-kafka that hides them is refused there.
cdef Timestamp timestamp_of = <Timestamp><uintptr_t>address_of("rd_kafka_message_timestamp")
cdef Destroy destroy_one = <Destroy><uintptr_t>address_of("rd_kafka_message_destroy")
cdef Headers headers_of = <Headers><uintptr_t>address_of("rd_kafka_message_headers")
cdef HeaderCount header_count = <HeaderCount><uintptr_t>address_of("rd_kafka_header_cnt")
cdef HeaderAt header_at = <HeaderAt><uintptr_t>address_of("rd_kafka_header_get_all")


def records(const uint64_t[:] addresses not None):
    found = np.empty(len(addresses), MESSAGE)
    cdef uint8_t* into = <uint8_t*><uintptr_t>found.ctypes.data
    cdef Py_ssize_t count = len(addresses), at
    cdef int64_t stamp
    with nogil:
        for at in range(count):
            if at + AHEAD < count:
                prefetch(addresses[at + AHEAD])
            memcpy(into, <const void*>addresses[at], TIMESTAMP_AT)
            stamp = timestamp_of(<const void*>addresses[at], NULL)
            memcpy(into + TIMESTAMP_AT, &stamp, sizeof(stamp))
            into += MESSAGE_BYTES
    return found


def destroy(const uint64_t[:] addresses not None):
    cdef Py_ssize_t count = len(addresses), at
    with nogil:
        for at in range(count):
            if at + AHEAD < count:
                prefetch(addresses[at + AHEAD])
            destroy_one(<void*>addresses[at])


def binary(addresses, lengths):
    cdef const uint64_t[:] places = addresses
    cdef const uint64_t[:] sizes = np.asarray(lengths, np.uint64)
    cdef Py_ssize_t count = len(places), at, nulls = 0
    offsets = pa.allocate_buffer((count + 1) * sizeof(int32_t))
    cdef int32_t* ends = <int32_t*><uintptr_t>offsets.address
    cdef uint64_t size, total = 0
    with nogil:
        ends[0] = 0
        for at in range(count):
            size = sizes[at] if places[at] else 0
            nulls += not places[at]
            total += size
            if size > INT32_MAX or total > INT32_MAX:
                break
            ends[at + 1] = <int32_t>total
    if total > INT32_MAX:
        raise pa.ArrowInvalid("the values of a batch are longer than 2 GiB together")
    content = pa.allocate_buffer(total)
    cdef uint8_t* into = <uint8_t*><uintptr_t>content.address
    with nogil:
        for at in range(count):
            if ends[at + 1] > ends[at]:
                memcpy(into + ends[at], <const void*>places[at], ends[at + 1] - ends[at])
    mask = valid_bits(places) if nulls else None
    return pa.Array.from_buffers(pa.binary(), count, [mask, offsets, content], nulls)


def headers(const uint64_t[:] addresses not None, kind):
    cdef Py_ssize_t count = len(addresses), at, nulls = 0
    cdef uint64_t[:] handles = np.zeros(count, np.uint64)
    offsets = pa.allocate_buffer((count + 1) * sizeof(int32_t))
    cdef int32_t* ends = <int32_t*><uintptr_t>offsets.address
    cdef void* handle
    cdef uint64_t total = 0
    with nogil:
        ends[0] = 0
        for at in range(count):
            if headers_of(<const void*>addresses[at], &handle):
                nulls += 1
            else:
                handles[at] = <uint64_t><uintptr_t>handle
                total += header_count(handle)
            if total > INT32_MAX:
                break
            ends[at + 1] = <int32_t>total
    if total > INT32_MAX:
        raise pa.ArrowInvalid("a batch has more than 2,147,483,647 headers")
    cells = np.zeros((4, total), np.uint64)
    cdef uint64_t[:, ::1] found = cells
    cdef bint ascii = True
    with nogil:
        for at in range(count):
            if handles[at]:
                ascii &= read_headers(<const void*>handles[at], ends[at], ends[at + 1], found)
    names = binary(cells[0], cells[1])
    keys = text_of(names) if ascii else pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())
    pairs = pa.Array.from_buffers(kind.value_type, total, [None], 0, 0, [keys, binary(cells[2], cells[3])])
    mask = valid_bits(handles) if nulls else None
    return pa.Array.from_buffers(kind, count, [mask, offsets], nulls, 0, [pairs])


cdef bint read_headers(const void* handle, int32_t begin, int32_t end, uint64_t[:, ::1] found) noexcept nogil:
    """Write the addresses and lengths of the names and the values of one record; return whether all names are ASCII."""
    cdef const char* name
    cdef const void* value
    cdef size_t size, length, letter
    cdef bint ascii = True
    cdef int32_t at
    for at in range(begin, end):
        if header_at(handle, at - begin, &name, &value, &size):
            continue
        length = strlen(name)
        found[0, at], found[1, at] = <uint64_t><uintptr_t>name, length
        found[2, at], found[3, at] = <uint64_t><uintptr_t>value, size
        for letter in range(length):
            ascii &= not name[letter] & 0x80
    return ascii


cdef object text_of(names):
    return pa.Array.from_buffers(pa.string(), len(names), names.buffers(), names.null_count)


cdef object valid_bits(const uint64_t[:] places):
    """Return Arrow's mask: a bit for each place that is not 0."""
    cdef Py_ssize_t count = len(places), at
    mask = pa.allocate_buffer((count + 7) // 8)
    cdef uint8_t* bits = <uint8_t*><uintptr_t>mask.address
    with nogil:
        memset(bits, 0, (count + 7) // 8)
        for at in range(count):
            if places[at]:
                bits[at >> 3] |= <uint8_t>(1 << (at & 7))
    return mask
