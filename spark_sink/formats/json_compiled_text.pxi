"""Tokens of JSON (RFC 8259): names, strings and numbers. What is not certainly valid is DOUBTFUL, never accepted."""

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* A byte of each 8 that ends a run of plain text: a quote, a backslash, a control character, or not ASCII. */
    static inline int az_plain_eight(const uint8_t *at) {
        const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
        uint64_t word, quote, slash;
        memcpy(&word, at, 8);
        quote = word ^ (ones * '"');
        slash = word ^ (ones * '\\\\');
        return !((((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | word) & tops);
    }

    static inline int az_leading_zeros(uint64_t word) {
    #if defined(__GNUC__)
        return __builtin_clzll(word);
    #else
        int found = 0;
        while (!(word >> 63)) { word <<= 1; found++; }
        return found;
    #endif
    }

    /* The 128 bits of a product. */
    static inline uint64_t az_multiply(uint64_t one, uint64_t other, uint64_t *low) {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 found = (unsigned __int128)one * other;
        *low = (uint64_t)found;
        return (uint64_t)(found >> 64);
    #else
        uint64_t a = one >> 32, b = (uint32_t)one, c = other >> 32, d = (uint32_t)other;
        uint64_t middle = (b * d >> 32) + (uint32_t)(a * d) + (uint32_t)(b * c);
        *low = (middle << 32) | (uint32_t)(b * d);
        return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
    #endif
    }
    """
    int az_plain_eight(const uint8_t* at) noexcept nogil
    int az_leading_zeros(uint64_t word) noexcept nogil
    uint64_t az_multiply(uint64_t one, uint64_t other, uint64_t* low) noexcept nogil

cdef enum:
    FINE = 0
    DOUBTFUL = 1  # the reference decoder decides
    NO_MEMORY = 2

cdef enum:
    MOST_DIGITS = 19  # of a number that fits 64 bits
    MOST_PLAIN_DIGITS = 250  # of a skipped number: a longer one may be infinite, which is no JSON for the reference
    MOST_PLAIN_EXPONENT = 50
    SMALLEST_POWER = -342
    LARGEST_POWER = 308

cdef uint64_t POWERS_OF_FIVE[2 * (308 + 342 + 1)]
cdef bint powers_are_there = False

cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end

cdef struct Number:
    uint64_t digits  # without sign and point; only its first 19 if `long`
    int fraction  # digits after the point
    int exponent
    bint negative
    bint whole  # neither a point nor an exponent
    bint long


cdef void fill_powers_of_five():
    """Compute the leading 128 bits of each power of five, cut; those from -27 to -1 are rounded up.

    Source: Lemire 2021, Number Parsing at a Gigabyte per Second, section 5.
    """
    global powers_are_there
    if powers_are_there:
        return
    for power in range(SMALLEST_POWER, LARGEST_POWER + 1):
        five = 5 ** abs(power)
        if power < 0:
            more = 0 if power >= -27 else five.bit_length() + 1
            found = (1 << (five.bit_length() + 127 + more)) // five + 1
            found >>= found.bit_length() - 128
        else:
            extra = five.bit_length() - 128
            found = five >> extra if extra > 0 else five << -extra
        POWERS_OF_FIVE[2 * (power - SMALLEST_POWER)] = found >> 64
        POWERS_OF_FIVE[2 * (power - SMALLEST_POWER) + 1] = found & 0xFFFFFFFFFFFFFFFF
    powers_are_there = True


cdef inline void skip_blanks(Cursor* c) noexcept nogil:
    while c.at < c.end and (c.at[0] == 32 or c.at[0] == 10 or c.at[0] == 13 or c.at[0] == 9):
        c.at += 1


cdef inline bint take(Cursor* c, uint8_t wanted) noexcept nogil:
    if c.at < c.end and c.at[0] == wanted:
        c.at += 1
        return True
    return False


cdef inline bint take_word(Cursor* c, const char* word, Py_ssize_t length) noexcept nogil:
    if c.end - c.at < length or memcmp(c.at, word, length):
        return False
    c.at += length
    return True


cdef inline int plain_run(Cursor* c) noexcept nogil:
    """Advance to the end of the string or to an escape; the bytes on the way are valid UTF-8."""
    cdef uint8_t byte
    cdef int more
    while True:
        while c.end - c.at >= 8 and az_plain_eight(c.at):
            c.at += 8
        if c.at == c.end:
            return DOUBTFUL
        byte = c.at[0]
        if byte == 34 or byte == 92:  # a quote, a backslash
            return FINE
        if byte < 0x20:
            return DOUBTFUL
        if byte < 0x80:
            c.at += 1
            continue
        more = following_bytes(c)
        if not more:
            return DOUBTFUL
        c.at += more + 1


cdef inline bint continues(uint8_t byte) noexcept nogil:
    return byte & 0xC0 == 0x80


cdef inline int following_bytes(const Cursor* c) noexcept nogil:
    """Return how many bytes follow the first one of a character; 0 if it is not valid (Unicode 16, table 3-7)."""
    cdef Py_ssize_t left = c.end - c.at
    cdef uint8_t first = c.at[0]
    if 0xC2 <= first <= 0xDF:
        return 1 if left > 1 and continues(c.at[1]) else 0
    if left > 2 and 0xE0 <= first <= 0xEF and continues(c.at[1]) and continues(c.at[2]):
        if first == 0xE0 and c.at[1] < 0xA0 or first == 0xED and c.at[1] > 0x9F:
            return 0
        return 2
    if left > 3 and 0xF0 <= first <= 0xF4 and continues(c.at[1]) and continues(c.at[2]) and continues(c.at[3]):
        if first == 0xF0 and c.at[1] < 0x90 or first == 0xF4 and c.at[1] > 0x8F:
            return 0
        return 3
    return 0


cdef inline int hex_digit(uint8_t byte) noexcept nogil:
    if 48 <= byte <= 57:
        return byte - 48
    if 65 <= byte <= 70:
        return byte - 55
    if 97 <= byte <= 102:
        return byte - 87
    return -1


cdef int code_unit(Cursor* c) noexcept nogil:
    """Read the four digits after `\\u`; negative if they are none."""
    cdef int found = 0, digit, number
    if c.end - c.at < 4:
        return -1
    for number in range(4):
        digit = hex_digit(c.at[number])
        if digit < 0:
            return -1
        found = found * 16 + digit
    c.at += 4
    return found


cdef int escaped(Cursor* c, uint8_t* into) noexcept nogil:
    """Read an escape, from its backslash on, and write its UTF-8; return the bytes written, 0 if it is not valid."""
    cdef int unit, low
    cdef uint8_t kind
    c.at += 1
    if c.at == c.end:
        return 0
    kind = c.at[0]
    c.at += 1
    if kind != 117:  # u
        into[0] = simple_escape(kind)
        return 1 if into[0] else 0
    unit = code_unit(c)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return 0
    if 0xD800 <= unit <= 0xDBFF:
        if not take_word(c, b"\\u", 2):
            return 0
        low = code_unit(c)
        if not 0xDC00 <= low <= 0xDFFF:
            return 0
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
    return utf8(unit, into)


cdef inline uint8_t simple_escape(uint8_t kind) noexcept nogil:
    if kind == 34 or kind == 92 or kind == 47:  # a quote, a backslash, a slash
        return kind
    if kind == 98:
        return 8
    if kind == 102:
        return 12
    if kind == 110:
        return 10
    if kind == 114:
        return 13
    return 9 if kind == 116 else 0


cdef inline int utf8(int letter, uint8_t* into) noexcept nogil:
    if letter < 0x80:
        into[0] = <uint8_t>letter
        return 1
    if letter < 0x800:
        into[0], into[1] = <uint8_t>(0xC0 | letter >> 6), <uint8_t>(0x80 | letter & 0x3F)
        return 2
    if letter < 0x10000:
        into[0], into[1] = <uint8_t>(0xE0 | letter >> 12), <uint8_t>(0x80 | letter >> 6 & 0x3F)
        into[2] = <uint8_t>(0x80 | letter & 0x3F)
        return 3
    into[0], into[1] = <uint8_t>(0xF0 | letter >> 18), <uint8_t>(0x80 | letter >> 12 & 0x3F)
    into[2], into[3] = <uint8_t>(0x80 | letter >> 6 & 0x3F), <uint8_t>(0x80 | letter & 0x3F)
    return 4


cdef inline bint is_digit(const Cursor* c) noexcept nogil:
    return c.at < c.end and 48 <= c.at[0] <= 57


cdef inline int read_number(Cursor* c, Number* found) noexcept nogil:
    """Read a number by the grammar of JSON."""
    cdef const uint8_t* begin
    cdef bint minus
    cdef int exponent = 0
    found.digits, found.fraction, found.exponent = 0, 0, 0
    found.negative, found.whole, found.long = take(c, 45), True, False
    begin = c.at
    if not is_digit(c):
        return DOUBTFUL
    if c.at[0] == 48:
        c.at += 1
    else:
        while is_digit(c):
            found.digits = found.digits * 10 + (c.at[0] - 48)
            c.at += 1
    if c.at - begin > MOST_DIGITS - 1:
        found.long = True
    if take(c, 46):
        found.whole = False
        begin = c.at
        while is_digit(c):
            if found.digits < 1000000000000000000ULL:
                found.digits = found.digits * 10 + (c.at[0] - 48)
            else:
                found.long = True
            c.at += 1
        if c.at == begin or c.at - begin > MOST_PLAIN_DIGITS:
            return DOUBTFUL
        found.fraction = <int>(c.at - begin)
    if c.at < c.end and (c.at[0] | 32) == 101:  # e
        found.whole = False
        c.at += 1
        minus = take(c, 45)
        if not minus:
            take(c, 43)
        begin = c.at
        while is_digit(c):
            exponent = exponent * 10 + (c.at[0] - 48) if exponent < 10000 else exponent
            c.at += 1
        if c.at == begin:
            return DOUBTFUL
        found.exponent = -exponent if minus else exponent
    return FINE


cdef int nearest_double(const Number* number, double* found) noexcept nogil:
    """Find the double nearest to a number that is not whole; DOUBTFUL if it has too many digits or is very small.

    Source: Lemire 2021, algorithm 1; Mushtak and Lemire 2023 show that its products never need a third word.
    """
    cdef int power = number.exponent - number.fraction, zeros, binary, top
    cdef uint64_t high, low, more, ignored, mantissa
    cdef const uint64_t* five
    if number.long:
        return DOUBTFUL
    if not number.digits:
        found[0] = -0.0 if number.negative else 0.0
        return FINE
    if not SMALLEST_POWER <= power <= LARGEST_POWER:
        return DOUBTFUL
    zeros = az_leading_zeros(number.digits)
    five = &POWERS_OF_FIVE[2 * (power - SMALLEST_POWER)]
    high = az_multiply(number.digits << zeros, five[0], &low)
    if high & 0x1FF == 0x1FF:
        more = az_multiply(number.digits << zeros, five[1], &ignored)
        low += more
        high += low < more
    top = <int>(high >> 63)
    mantissa = high >> (top + 9)
    binary = ((217706 * power) >> 16) + 1086 + top - zeros
    if binary <= 0 or binary >= 2046:  # next to the smallest and the largest doubles
        return DOUBTFUL
    if low <= 1 and -4 <= power <= 23 and mantissa & 3 == 1 and mantissa << (top + 9) == high:
        mantissa &= ~<uint64_t>1  # exactly between two doubles: the even one
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if mantissa >> 53:
        mantissa >>= 1
        binary += 1
    mantissa = (mantissa & 0xFFFFFFFFFFFFFULL) | <uint64_t>binary << 52 | <uint64_t>number.negative << 63
    memcpy(found, &mantissa, sizeof(mantissa))
    return FINE
