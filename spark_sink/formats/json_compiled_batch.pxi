"""One batch: values in, columns out."""


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
