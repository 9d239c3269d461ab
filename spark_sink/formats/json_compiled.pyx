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


cdef class Batch:
    """The columns of one batch, as they grow."""

    cdef Plan plan
    cdef Node* nodes
    cdef bint inexact

    def __cinit__(self, Plan plan):
        self.plan = plan
        self.nodes = <Node*>calloc(plan.count, sizeof(Node))
        if not self.nodes:
            raise MemoryError
        memcpy(self.nodes, plan.nodes, plan.count * sizeof(Node))

    def __dealloc__(self):
        cdef int at
        if not self.nodes:
            return
        for at in range(self.plan.count):
            free(self.nodes[at].values)
            free(self.nodes[at].valid)
            free(self.nodes[at].text)
        free(self.nodes)

    cdef int read(
        self,
        const uint8_t* content,
        const int32_t* offsets,
        const uint8_t* validity,
        Py_ssize_t first,
        Py_ssize_t rows,
        uint8_t* state,
    ) noexcept:
        cdef Py_ssize_t row, at
        cdef Cursor c
        cdef int found
        with nogil:
            for row in range(rows):
                at = first + row
                found = DOUBTFUL
                if validity == NULL or validity[at >> 3] >> (at & 7) & 1:
                    c.at, c.end = content + offsets[at], content + offsets[at + 1]
                    self.inexact = False
                    found = self.row(&c)
                if found == DOUBTFUL:
                    cut(self.nodes, self.nodes, row)
                    state[row] = DOUBTFUL
                    found = append_null(self.nodes, self.nodes)
                elif self.inexact:
                    state[row] = INEXACT
                if found == NO_MEMORY:
                    return NO_MEMORY
        return FINE

    cdef int row(self, Cursor* c) noexcept nogil:
        cdef int found
        skip_blanks(c)
        if not take(c, 123):
            return DOUBTFUL
        found = self.members(self.nodes, c)
        if found:
            return found
        skip_blanks(c)
        return FINE if c.at == c.end else DOUBTFUL

    cdef int members(self, Node* node, Cursor* c) noexcept nogil:
        """Read an object from behind its opening brace on."""
        cdef Node* child
        cdef int* guess = &node.opening
        cdef int found, number
        if reserve(node):
            return NO_MEMORY
        skip_blanks(c)
        if not take(c, 125):
            while True:
                skip_blanks(c)
                if not take(c, 34):
                    return DOUBTFUL
                child = &self.nodes[guess[0]]
                if not (c.end - c.at > child.name_bytes and c.at[child.name_bytes] == 34):
                    child = NULL
                elif memcmp(c.at, child.name, child.name_bytes):
                    child = NULL
                if child:
                    c.at += child.name_bytes + 1
                elif self.member(node, c, &child):
                    return DOUBTFUL
                skip_blanks(c)
                if not take(c, 58):
                    return DOUBTFUL
                skip_blanks(c)
                if child:
                    # A name may come twice, and the reference decoder takes the last one.
                    if child.count != node.count:
                        return DOUBTFUL
                    guess[0] = <int>(child - self.nodes)
                    guess = &child.following
                    found = self.value(child, c)
                else:
                    found = skip_value(c, MOST_LEVELS) if self.plan.unknown else DOUBTFUL
                if found:
                    return found
                skip_blanks(c)
                if take(c, 44):
                    continue
                if take(c, 125):
                    break
                return DOUBTFUL
        for number in range(node.first, node.first + node.children):
            if self.nodes[number].count == node.count and append_null(self.nodes, &self.nodes[number]):
                return NO_MEMORY
        set_valid(node)
        return FINE

    cdef int member(self, Node* node, Cursor* c, Node** child) noexcept nogil:
        """Read a name up to its closing quote, and find its child; NULL if it is unknown."""
        cdef const uint8_t* begin = c.at
        cdef int slot, number
        if plain_run(c) or c.at[0] != 34:  # names with escapes are left to the reference decoder
            return DOUBTFUL
        slot = hash_of(begin, c.at - begin) & (node.slots - 1)
        while True:
            number = self.plan.slots[node.hashed + slot]
            if number < 0:
                child[0] = NULL
                break
            if self.nodes[number].name_bytes == c.at - begin and not memcmp(self.nodes[number].name, begin, c.at - begin):
                child[0] = &self.nodes[number]
                break
            slot = (slot + 1) & (node.slots - 1)
        c.at += 1
        return FINE

    cdef int value(self, Node* node, Cursor* c) noexcept nogil:
        if c.at == c.end:
            return DOUBTFUL
        if c.at[0] == 110:
            return append_null(self.nodes, node) if take_word(c, b"null", 4) else DOUBTFUL
        if node.kind == TEXT:
            if take(c, 34):
                return text_cell(node, c)
            return other_text_cell(node, c) if node.any_text else DOUBTFUL
        if node.kind == INTEGER:
            return integer_cell(node, c)
        if node.kind == DOUBLE or node.kind == SINGLE:
            return float_cell(node, c)
        if node.kind == TRUTH:
            return truth_cell(node, c)
        if node.kind == DECIMAL:
            return decimal_cell(node, c, &self.inexact)
        if node.kind == DATE:
            return date_cell(node, c)
        if node.kind == TIME:
            return time_cell(node, c)
        if node.kind == OBJECT:
            return self.members(node, c) if take(c, 123) else DOUBTFUL
        return self.elements(node, c) if take(c, 91) else DOUBTFUL

    cdef int elements(self, Node* node, Cursor* c) noexcept nogil:
        """Read a list from behind its opening bracket on."""
        cdef Node* child = &self.nodes[node.first]
        cdef int found
        if reserve(node):
            return NO_MEMORY
        skip_blanks(c)
        if not take(c, 93):
            while True:
                skip_blanks(c)
                found = self.value(child, c)
                if found:
                    return found
                skip_blanks(c)
                if take(c, 44):
                    continue
                if take(c, 93):
                    break
                return DOUBTFUL
        offsets_of(node)[node.count + 1] = <int32_t>child.count
        set_valid(node)
        return FINE

    cdef list children(self, int at):
        cdef int number
        first, count = self.nodes[at].first, self.nodes[at].children
        return [self.array(number) for number in range(first, first + count)]

    cdef object array(self, int at):
        """Turn a node into an array, which takes its memory."""
        cdef Node* node = &self.nodes[at]
        cdef int64_t count = node.count
        inner = self.children(at)
        kind = self.plan.kinds[at]
        if not node.capacity:
            return pa.array([], kind)
        valid = None
        if node.nulls:
            valid = buffer_of(node.valid, (count + 7) // 8)
            node.valid = NULL
        if node.kind == OBJECT:
            return pa.Array.from_buffers(kind, count, [valid], node.nulls, 0, inner)
        cdef int64_t size = (count + 1 if node.kind == TEXT or node.kind == LIST else count) * node.width
        cdef int64_t text_bytes = offsets_of(node)[count] if node.kind == TEXT else 0
        values = buffer_of(node.values, size)
        node.values = NULL
        if node.kind == TRUTH:
            values = pa.py_buffer(np.packbits(np.frombuffer(values, np.uint8), bitorder="little"))
        buffers = [valid, values]
        if node.kind == TEXT:
            if node.text == NULL:
                buffers.append(pa.py_buffer(b""))
            else:
                buffers.append(buffer_of(realloc_down(node, text_bytes), text_bytes))
        return pa.Array.from_buffers(kind, count, buffers, node.nulls, 0, inner)


cdef void* realloc_down(Node* node, int64_t size) noexcept:
    """Give the room back that texts did not need."""
    cdef void* text = realloc(node.text, size + 1)
    if not text:
        text = node.text
    node.text = NULL
    return text


cdef inline int hash_of(const uint8_t* at, Py_ssize_t length) noexcept nogil:
    """FNV-1a, of 32 bits."""
    cdef uint64_t found = 2166136261ULL
    cdef Py_ssize_t number
    for number in range(length):
        found = ((found ^ at[number]) * 16777619) & 0xFFFFFFFFULL
    return <int>(found & 0x7FFFFFFF)


cdef list inner_fields(kind):
    if pa.types.is_struct(kind):
        return list(kind)
    return [kind.value_field] if pa.types.is_list(kind) else []


cdef dict KINDS = {
    "string": (TEXT, 4),
    "bool": (TRUTH, 1),
    "int8": (INTEGER, 1),
    "int16": (INTEGER, 2),
    "int32": (INTEGER, 4),
    "int64": (INTEGER, 8),
    "double": (DOUBLE, 8),
    "float": (SINGLE, 4),
    "date32[day]": (DATE, 4),
    "timestamp[us, tz=UTC]": (TIME, 8),
    "timestamp[us]": (TIME, 8),
}


cdef int set_kind(Node* node, kind) except -1:
    if pa.types.is_struct(kind):
        node.kind = OBJECT
    elif pa.types.is_list(kind):
        node.kind, node.width = LIST, 4
    elif pa.types.is_decimal128(kind):
        node.kind, node.width, node.scale = DECIMAL, 16, kind.scale
        node.high = 10 ** min(kind.precision, MOST_DECIMAL_DIGITS) - 1
    else:
        node.kind, node.width = KINDS[str(kind)]
        node.zone = node.kind == TIME and kind.tz is not None
        if node.kind == INTEGER:
            node.high = INT64_MAX >> (64 - 8 * node.width)
            node.low = -node.high - 1
    return 0


def can_plan(columns):
    """Return whether a plan can be made for columns."""
    return bool(len(columns)) and fields_fit(list(columns), MOST_LEVELS)


cdef bint fields_fit(list fields, int levels):
    names = [field.name for field in fields]
    return levels > 0 and len(set(names)) == len(names) and all([field_fits(field, levels) for field in fields])


cdef bint field_fits(field, int levels):
    kind = field.type
    if not field.nullable or any([letter in '"\\' or letter < " " for letter in field.name]):
        return False
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        inner = inner_fields(kind)
        return bool(inner) and fields_fit(inner, levels - 1)
    if pa.types.is_decimal128(kind):
        return kind.scale >= 0
    return str(kind) in KINDS
