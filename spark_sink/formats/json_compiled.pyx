# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""JSON values into Arrow columns, without Python objects and without the interpreter's lock.

Rows that this decoder takes have the values that the reference decoder (`json_decoder`) gives them. It takes no row of
which it is not certain: it has no rules for what is bad, and names such rows for the reference decoder to decide. So it
may refuse good rows, such as those with numbers of many digits, and never takes a bad one.
"""

from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np
import pyarrow as pa

include "json_compiled_text.pxi"
include "json_compiled_skipped.pxi"
include "json_compiled_cells.pxi"
include "json_compiled_times.pxi"
include "json_compiled_kinds.pxi"
include "json_compiled_batch.pxi"

cdef enum:
    MOST_LEVELS = 64  # of a skipped value, and of a schema; the reference decoder has a bound of 200 for both together
    INEXACT = 3  # a row is fine, but the reference decoder would parse its neighbours again

LEFT, INEXACT_ROW = DOUBTFUL, INEXACT


cdef class Memory:
    """Memory that an Arrow buffer refers to."""

    cdef void* address

    def __dealloc__(self):
        free(self.address)


cdef object buffer_of(void* address, int64_t size):
    cdef Memory owner = Memory()
    owner.address = address
    return pa.foreign_buffer(<uintptr_t>address, size, owner)


cdef class Plan:
    """How the values of a schema are read.

    Args:
        columns: the columns.
        any_text: text columns take integers, true and false as they are written.
        unknown: members that the schema lacks are skipped; otherwise their row is left to the reference decoder.
    """

    cdef Node* nodes  # the first is the object with the columns
    cdef int count
    cdef int* slots
    cdef bint unknown
    cdef list names, kinds

    def __cinit__(self, columns, *, bint any_text, bint unknown):
        self.unknown = unknown
        self.names, self.kinds = [], [pa.struct(list(columns))]
        self.count, hashed = 1, 0
        at = 0
        layout = [(0, 0, 0, 0)]
        while at < len(self.kinds):
            inner = inner_fields(self.kinds[at])
            size = 0
            if pa.types.is_struct(self.kinds[at]):
                size = 1 << (2 * len(inner)).bit_length()
            layout[at] = (len(self.kinds), len(inner), hashed, size)
            hashed += size
            self.kinds += [field.type for field in inner]
            layout += [(0, 0, 0, 0)] * len(inner)
            at += 1
        self.count = len(self.kinds)
        self.nodes = <Node*>calloc(self.count, sizeof(Node))
        self.slots = <int*>calloc(hashed + 1, sizeof(int))
        if not self.nodes or not self.slots:
            raise MemoryError
        memset(self.slots, 0xFF, hashed * sizeof(int))
        for at, (first, children, begin, size) in enumerate(layout):
            set_kind(&self.nodes[at], self.kinds[at])
            self.nodes[at].any_text = any_text
            self.nodes[at].first, self.nodes[at].children = first, children
            self.nodes[at].hashed, self.nodes[at].slots = begin, size
            for number, field in enumerate(inner_fields(self.kinds[at])):
                name = field.name.encode()
                self.names.append(name)
                self.nodes[first + number].name = name
                self.nodes[first + number].name_bytes = len(name)
                # Whatever comes first: the order of the members is learnt.
                self.nodes[first + number].following = first + (number + 1) % children
        for at in range(self.count):
            if self.nodes[at].kind == OBJECT:
                self._hash_children(at)
        fill_powers_of_five()

    cdef void _hash_children(self, int at):
        cdef Node* node = &self.nodes[at]
        cdef int number, slot
        node.opening = node.first
        for number in range(node.first, node.first + node.children):
            slot = hash_of(<const uint8_t*>self.nodes[number].name, self.nodes[number].name_bytes) & (node.slots - 1)
            while self.slots[node.hashed + slot] >= 0:
                slot = (slot + 1) & (node.slots - 1)
            self.slots[node.hashed + slot] = number

    def __dealloc__(self):
        free(self.nodes)
        free(self.slots)

    def decode(self, values):
        """Decode values.

        Args:
            values: N values, of the type `binary`.

        Returns:
            The columns, null in rows that are left to the reference decoder; an array of N bytes: `LEFT` for a row
            that is left, `INEXACT_ROW` for one that was taken although doubles cannot hold its digits, otherwise 0.
        """
        cdef Batch batch = Batch(self)
        cdef Py_ssize_t rows = len(values), first = values.offset
        validity, offsets, content = values.buffers()
        state = np.zeros(rows, np.uint8)
        if rows and batch.read(
            <const uint8_t*><uintptr_t>(content.address if content is not None else 0),
            <const int32_t*><uintptr_t>offsets.address,
            <const uint8_t*><uintptr_t>(validity.address if validity is not None else 0),
            first,
            rows,
            <uint8_t*><uintptr_t>state.ctypes.data,
        ):
            raise MemoryError
        return batch.children(0), state


cdef inline int hash_of(const uint8_t* at, Py_ssize_t length) noexcept nogil:
    """FNV-1a, of 32 bits."""
    cdef uint64_t found = 2166136261ULL
    cdef Py_ssize_t number
    for number in range(length):
        found = ((found ^ at[number]) * 16777619) & 0xFFFFFFFFULL
    return <int>(found & 0x7FFFFFFF)
