"""Values that no column takes: checked as strictly as any other, and dropped."""


cdef inline int skip_number(Cursor* c) noexcept nogil:
    cdef Number number
    cdef const uint8_t* begin = c.at
    if read_number(c, &number) or number.exponent > MOST_PLAIN_EXPONENT or number.exponent < -MOST_PLAIN_EXPONENT:
        return DOUBTFUL
    return DOUBTFUL if c.at - begin > MOST_PLAIN_DIGITS else FINE


cdef int skip_value(Cursor* c, int levels) noexcept nogil:
    """Skip a value that no column takes, and check it as strictly as any other."""
    cdef uint8_t kind
    if c.at == c.end or not levels:
        return DOUBTFUL
    kind = c.at[0]
    if kind == 34:
        c.at += 1
        return skip_string(c)
    if kind == 123:
        c.at += 1
        return skip_inner(c, 125, levels)
    if kind == 91:
        c.at += 1
        return skip_inner(c, 93, levels)
    if take_word(c, b"true", 4) or take_word(c, b"false", 5) or take_word(c, b"null", 4):
        return FINE
    return skip_number(c)


cdef int skip_string(Cursor* c) noexcept nogil:
    cdef uint8_t letter[4]
    while True:
        if plain_run(c):
            return DOUBTFUL
        if take(c, 34):
            return FINE
        if not escaped(c, letter):
            return DOUBTFUL


cdef int skip_inner(Cursor* c, uint8_t closing, int levels) noexcept nogil:
    """Skip the members of an object or the elements of a list."""
    skip_blanks(c)
    if take(c, closing):
        return FINE
    while True:
        skip_blanks(c)
        if closing == 125:
            if not take(c, 34) or skip_string(c):
                return DOUBTFUL
            skip_blanks(c)
            if not take(c, 58):
                return DOUBTFUL
            skip_blanks(c)
        if skip_value(c, levels - 1):
            return DOUBTFUL
        skip_blanks(c)
        if take(c, 44):
            continue
        return FINE if take(c, closing) else DOUBTFUL
