# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Decodes Kafka's record batches (format 2, KIP-98) without copying: where each record's key, value and headers are.

The bytes come from a socket, so each length is checked against the end of what it lies in. A batch that does not fit
its own lengths ends the decoding before its first record.
"""

from libc.stdint cimport INT32_MAX, int8_t, int32_t, int64_t, uint8_t, uint64_t, uintptr_t

import numpy as np

from spark_sink.fetch.from_leaders.record_layout import RECORD

cdef enum:
    HEAD = 61  # bytes of a batch before its records
    LENGTH_AT = 12  # the field batchLength counts what follows it
    MAGIC_AT = 16
    FORMAT = 2
    CODEC = 0x07
    APPEND_TIME = 0x08
    CONTROL = 0x20
    SMALLEST_RECORD = 7

cdef struct Record:
    int64_t offset
    int64_t timestamp
    int64_t timestamp_type
    uint64_t key
    uint64_t key_bytes
    uint64_t value
    uint64_t value_bytes
    uint64_t headers
    uint64_t headers_bytes

assert RECORD.itemsize == sizeof(Record)


cdef inline int64_t big(const uint8_t* at, int size) noexcept nogil:
    """Read a big-endian number."""
    cdef int64_t found = <int8_t>at[0]
    cdef int place
    for place in range(1, size):
        found = (found << 8) | at[place]
    return found


cdef inline const uint8_t* varint(const uint8_t* at, const uint8_t* end, int64_t* found) noexcept nogil:
    """Read a zigzag number of at most ten bytes; return the place after it, NULL if there is none before `end`."""
    cdef uint64_t number = 0
    cdef int shift = 0
    while at != NULL and at < end and shift < 70:
        number |= <uint64_t>(at[0] & 0x7f) << shift if shift < 64 else 0
        if not at[0] & 0x80:
            found[0] = <int64_t>(number >> 1) ^ -<int64_t>(number & 1)
            return at + 1
        at += 1
        shift += 7
    return NULL


cdef inline const uint8_t* content(
    const uint8_t* at, const uint8_t* end, uint64_t* place, uint64_t* size
) noexcept nogil:
    """Read a length and skip as many bytes; a length of -1 stands for a null, whose place is 0."""
    cdef int64_t length = 0
    at = varint(at, end, &length)
    if at == NULL or length < -1 or length > end - at:
        return NULL
    place[0] = 0 if length < 0 else <uint64_t><uintptr_t>at
    size[0] = 0 if length < 0 else <uint64_t>length
    return at if length < 0 else at + length


cdef inline const uint8_t* record(const uint8_t* at, const uint8_t* end, Record* into) noexcept nogil:
    """Read one record, with its offset and time as differences; return the place after it, or NULL."""
    cdef int64_t length = 0
    cdef const uint8_t* last
    at = varint(at, end, &length)
    if at == NULL or length < 1 or length > end - at:
        return NULL
    last = at + length
    at = varint(at + 1, last, &into.timestamp)
    at = varint(at, last, &into.offset)
    at = content(at, last, &into.key, &into.key_bytes)
    at = content(at, last, &into.value, &into.value_bytes)
    if at == NULL:
        return NULL
    into.headers = <uint64_t><uintptr_t>at
    into.headers_bytes = <uint64_t>(last - at)
    return last


def survey(uintptr_t address, Py_ssize_t length):
    cdef const uint8_t* at = <const uint8_t*>address
    cdef const uint8_t* end = at + length
    cdef int64_t whole, count, records = 0
    cdef bint compressed = False, sound = True
    with nogil:
        while end - at >= HEAD:
            whole = big(at + 8, 4) + LENGTH_AT
            count = big(at + 57, 4)
            if at[MAGIC_AT] != FORMAT or whole < HEAD or count < 0:
                sound = False
                break
            if whole > end - at:
                break
            if at[22] & CODEC:
                compressed = True
            elif count * SMALLEST_RECORD > whole - HEAD:
                sound = False
                break
            records += count
            at += whole
    return int(at - <const uint8_t*>address), records, bool(compressed), bool(sound)


def decode(uintptr_t address, Py_ssize_t length, int64_t begin, int64_t end, into, Py_ssize_t filled):
    cdef const uint8_t* at = <const uint8_t*>address
    cdef const uint8_t* last = at + length
    cdef const uint8_t* place
    cdef const uint8_t* batch_end
    cdef Record* records = <Record*><uintptr_t>into.ctypes.data
    cdef Py_ssize_t room = len(into), first = filled, before
    cdef int64_t whole, count, base, base_time, append_time, number, last_delta, delta, previous = -1, position = begin
    cdef bint by_broker, sound = True
    with nogil:
        while last - at >= HEAD:
            whole = big(at + 8, 4) + LENGTH_AT
            if at[MAGIC_AT] != FORMAT or whole < HEAD or whole > last - at or at[22] & CODEC:
                sound = False
                break
            base, batch_end, last_delta = big(at, 8), at + whole, big(at + 23, 4)
            count = big(at + 57, 4)
            # Batches and records ascend, else a record would come twice, or the next request would ask for it again.
            if last_delta < 0 or base <= previous:
                sound = False
                break
            by_broker, base_time, append_time = (at[22] & APPEND_TIME) != 0, big(at + 27, 8), big(at + 35, 8)
            place, before, delta = at + HEAD, filled, -1
            if at[22] & CONTROL:
                count = 0
            elif count > room - filled:
                sound = False
                break
            for number in range(count):
                place = record(place, batch_end, &records[filled])
                if place == NULL or not delta < records[filled].offset <= last_delta:
                    sound = False
                    break
                delta = records[filled].offset
                records[filled].offset += base
                if begin <= records[filled].offset < end:
                    records[filled].timestamp = append_time if by_broker else records[filled].timestamp + base_time
                    records[filled].timestamp_type = by_broker
                    filled += 1
            if not at[22] & CONTROL and place != batch_end:  # otherwise bytes after the counted records would be lost
                sound = False
            if not sound:
                filled = before
                break
            previous = base + last_delta
            position = max(position, previous + 1)
            at += whole
    return filled - first, position, bool(sound)


def header_cells(found):
    cdef Record* records = <Record*><uintptr_t>found.ctypes.data
    cdef Py_ssize_t count = len(found), at
    cdef const uint8_t* place
    cdef const uint8_t* end
    cdef int64_t headers, header, total = 0, filled = 0
    cdef bint sound = True
    ends = np.zeros(count + 1, np.int32)
    cdef int32_t[::1] list_ends = ends
    with nogil:
        for at in range(count):
            place = <const uint8_t*><uintptr_t>records[at].headers
            end = place + records[at].headers_bytes
            headers = 0
            place = varint(place, end, &headers)
            if place == NULL or headers < 0 or 2 * headers > end - place or total + headers > INT32_MAX:
                sound = False
                break
            total += headers
            list_ends[at + 1] = <int32_t>total
    cells = np.zeros((4, total if sound else 0), np.uint64)
    cdef uint64_t[:, ::1] into = cells
    with nogil:
        if sound:
            for at in range(count):
                place = <const uint8_t*><uintptr_t>records[at].headers
                end = place + records[at].headers_bytes
                place = varint(place, end, &headers)
                for header in range(headers):
                    place = content(place, end, &into[0, filled], &into[1, filled])
                    if place == NULL or not into[0, filled]:
                        sound = False
                        break
                    place = content(place, end, &into[2, filled], &into[3, filled])
                    if place == NULL:
                        sound = False
                        break
                    filled += 1
                if not sound:
                    break
    return ends, cells, bool(sound)
