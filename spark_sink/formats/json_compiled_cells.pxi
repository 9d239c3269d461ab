"""Columns while they grow: a node of the schema has one value for each row, or for each element of its list."""

cdef enum:
    OBJECT = 1
    LIST = 2
    TEXT = 3
    TRUTH = 4
    INTEGER = 5
    DOUBLE = 6
    SINGLE = 7
    DECIMAL = 8
    DATE = 9
    TIME = 10

cdef enum:
    MOST_DECIMAL_DIGITS = 18  # of a decimal that 64 bits can hold

cdef struct Node:
    int kind
    int width  # bytes of a value; of an offset if the values are texts or lists
    int first  # its children are consecutive
    int children
    int opening  # the child that came first in the record before
    int following  # the sibling that came after it there
    int hashed  # the first of the object's slots
    int slots  # a power of 2; each holds the number of a child, or -1
    const char* name
    Py_ssize_t name_bytes
    int64_t low  # bounds of integers
    int64_t high  # of decimals as well
    int scale
    bint zone  # times have one
    bint any_text  # texts take other values, too
    int64_t count
    int64_t capacity
    int64_t nulls
    uint8_t* values
    uint8_t* valid  # Arrow's mask
    uint8_t* text
    int64_t text_capacity

cdef int64_t TENS[19]
TENS[:] = [10**power for power in range(19)]


cdef int grow(Node* node) noexcept nogil:
    cdef int64_t more = 2 * node.capacity if node.capacity else 1024
    cdef int64_t before = (node.capacity + 7) // 8
    # Offsets are one more than values.
    cdef void* values = realloc(node.values, (more + 1) * max(node.width, 1))
    if not values:
        return NO_MEMORY
    node.values = <uint8_t*>values
    if not node.capacity:
        memset(values, 0, max(node.width, 1))
    cdef void* valid = realloc(node.valid, (more + 7) // 8)
    if not valid:
        return NO_MEMORY
    node.valid = <uint8_t*>valid
    memset(node.valid + before, 0, (more + 7) // 8 - before)
    node.capacity = more
    return FINE


cdef inline int reserve(Node* node) noexcept nogil:
    return grow(node) if node.count == node.capacity else FINE


cdef inline void set_valid(Node* node) noexcept nogil:
    node.valid[node.count >> 3] |= <uint8_t>(1 << (node.count & 7))
    node.count += 1


cdef inline int32_t* offsets_of(const Node* node) noexcept nogil:
    return <int32_t*>node.values


cdef int reserve_text(Node* node, int64_t more) noexcept nogil:
    """Make room for as many bytes of text, after those of the values."""
    cdef int64_t wanted = offsets_of(node)[node.count] + more
    cdef void* text
    if wanted > node.text_capacity:
        wanted = max(2 * node.text_capacity, wanted + 1024)
        text = realloc(node.text, wanted)
        if not text:
            return NO_MEMORY
        node.text, node.text_capacity = <uint8_t*>text, wanted
    return FINE


cdef int append_null(Node* nodes, Node* node) noexcept nogil:
    cdef int number
    if reserve(node):
        return NO_MEMORY
    if node.kind == TEXT or node.kind == LIST:
        offsets_of(node)[node.count + 1] = offsets_of(node)[node.count]
    elif node.kind == OBJECT:
        for number in range(node.first, node.first + node.children):
            if append_null(nodes, &nodes[number]):
                return NO_MEMORY
    else:
        memset(node.values + node.count * node.width, 0, node.width)
    node.count += 1
    node.nulls += 1
    return FINE


cdef void cut(Node* nodes, Node* node, int64_t count) noexcept nogil:
    """Remove the values after the first `count`, and what is inside them."""
    cdef int number
    cdef int64_t inner = count
    cdef uint8_t bit
    if not node.capacity:
        return
    if node.kind == LIST:
        inner = offsets_of(node)[count]
    for number in range(node.first, node.first + node.children):
        cut(nodes, &nodes[number], inner)
    while node.count > count:
        node.count -= 1
        bit = <uint8_t>(1 << (node.count & 7))
        if node.valid[node.count >> 3] & bit:
            node.valid[node.count >> 3] ^= bit
        else:
            node.nulls -= 1


cdef int text_cell(Node* node, Cursor* c) noexcept nogil:
    """Read a string from behind its opening quote on."""
    cdef uint8_t* into
    cdef const uint8_t* begin
    cdef int written
    if reserve(node) or reserve_text(node, c.end - c.at):
        return NO_MEMORY
    into = node.text + offsets_of(node)[node.count]
    while True:
        begin = c.at
        if plain_run(c):
            return DOUBTFUL
        memcpy(into, begin, c.at - begin)
        into += c.at - begin
        if c.at[0] == 34:
            break
        # An escape is never shorter than its character.
        written = escaped(c, into)
        if not written:
            return DOUBTFUL
        into += written
    c.at += 1
    offsets_of(node)[node.count + 1] = <int32_t>(into - node.text)
    set_valid(node)
    return FINE


cdef int other_text_cell(Node* node, Cursor* c) noexcept nogil:
    """Read an integer, true or false into a column of texts, as it is written."""
    cdef Number number
    cdef const uint8_t* begin = c.at
    cdef Py_ssize_t length
    if not (take_word(c, b"true", 4) or take_word(c, b"false", 5)):
        if read_number(c, &number) or not number.whole or number.long or number.negative and not number.digits:
            return DOUBTFUL
    length = c.at - begin
    if reserve(node) or reserve_text(node, length):
        return NO_MEMORY
    memcpy(node.text + offsets_of(node)[node.count], begin, length)
    offsets_of(node)[node.count + 1] = offsets_of(node)[node.count] + <int32_t>length
    set_valid(node)
    return FINE


cdef inline int integer_cell(Node* node, Cursor* c) noexcept nogil:
    cdef Number number
    cdef int64_t value
    if read_number(c, &number) or not number.whole or number.long:
        return DOUBTFUL
    value = -<int64_t>number.digits if number.negative else <int64_t>number.digits
    if not node.low <= value <= node.high:
        return DOUBTFUL
    if reserve(node):
        return NO_MEMORY
    # The first bytes are the lowest ones: this module is built for such machines only.
    memcpy(node.values + node.count * node.width, &value, node.width)
    set_valid(node)
    return FINE


cdef inline int float_cell(Node* node, Cursor* c) noexcept nogil:
    cdef Number number
    cdef double value
    cdef float single
    if read_number(c, &number):
        return DOUBTFUL
    if number.whole:
        if number.long:
            return DOUBTFUL
        # As the reference does: an integer has no negative zero.
        value = <double>(-<int64_t>number.digits if number.negative else <int64_t>number.digits)
    elif nearest_double(&number, &value):
        return DOUBTFUL
    if reserve(node):
        return NO_MEMORY
    if node.kind == DOUBLE:
        memcpy(node.values + 8 * node.count, &value, 8)
    else:
        single = <float>value
        if single - single != 0:  # infinite
            return DOUBTFUL
        memcpy(node.values + 4 * node.count, &single, 4)
    set_valid(node)
    return FINE


cdef int decimal_cell(Node* node, Cursor* c, bint* inexact) noexcept nogil:
    """Read a decimal from a number or a string; without exponent, and of few digits."""
    cdef Number number
    cdef bint quoted = take(c, 34)
    cdef int64_t words[2]
    if read_number(c, &number) or number.long or number.exponent:
        return DOUBTFUL
    if quoted and not take(c, 34):
        return DOUBTFUL
    while number.fraction > node.scale and number.digits % 10 == 0:
        number.digits //= 10
        number.fraction -= 1
    if number.fraction > node.scale or node.scale - number.fraction > MOST_DECIMAL_DIGITS:
        return DOUBTFUL
    if number.digits > <uint64_t>(node.high // TENS[node.scale - number.fraction]):
        return DOUBTFUL
    words[0] = <int64_t>number.digits * TENS[node.scale - number.fraction]
    if number.negative:
        words[0] = -words[0]
    words[1] = -1 if words[0] < 0 else 0
    if reserve(node):
        return NO_MEMORY
    memcpy(node.values + 16 * node.count, words, 16)
    set_valid(node)
    if not quoted and not number.whole:
        inexact[0] = True
    return FINE


cdef inline int truth_cell(Node* node, Cursor* c) noexcept nogil:
    cdef uint8_t value = take_word(c, b"true", 4)
    if not value and not take_word(c, b"false", 5):
        return DOUBTFUL
    if reserve(node):
        return NO_MEMORY
    node.values[node.count] = value
    set_valid(node)
    return FINE
