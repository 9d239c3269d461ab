"""Dates and times, only in the spelling of ISO 8601 with dashes and colons."""


cdef inline int two_digits(const uint8_t* at) noexcept nogil:
    return (at[0] - 48) * 10 + at[1] - 48


cdef inline bint are_digits(const uint8_t* at, int count) noexcept nogil:
    cdef int number
    for number in range(count):
        if not 48 <= at[number] <= 57:
            return False
    return True


cdef inline int days_of_month(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef int read_date(Cursor* c, int64_t* days) noexcept nogil:
    """Read `YYYY-MM-DD` as days since 1970 in the Gregorian calendar, from the year 1 on."""
    cdef int year, month, day, before
    if c.end - c.at < 10 or not (are_digits(c.at, 4) and are_digits(c.at + 5, 2) and are_digits(c.at + 8, 2)):
        return DOUBTFUL
    year, month, day = two_digits(c.at) * 100 + two_digits(c.at + 2), two_digits(c.at + 5), two_digits(c.at + 8)
    if c.at[4] != 45 or c.at[7] != 45 or year < 1 or not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        return DOUBTFUL
    # Years begin in March here, so that the leap day is the last of its year.
    if month <= 2:
        year -= 1
        month += 12
    before = year * 365 + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5
    days[0] = before + day - 719469
    c.at += 10
    return FINE


cdef int date_cell(Node* node, Cursor* c) noexcept nogil:
    cdef int64_t days
    cdef int32_t value
    if not take(c, 34) or read_date(c, &days) or not take(c, 34):
        return DOUBTFUL
    if reserve(node):
        return NO_MEMORY
    value = <int32_t>days
    memcpy(node.values + 4 * node.count, &value, 4)
    set_valid(node)
    return FINE


cdef int read_clock(Cursor* c, int64_t* microseconds) noexcept nogil:
    """Read `HH:MM:SS`, with up to six digits after a point."""
    cdef int64_t seconds, fraction = 0
    cdef int digits = 0
    if c.end - c.at < 8 or c.at[2] != 58 or c.at[5] != 58:
        return DOUBTFUL
    if not (are_digits(c.at, 2) and are_digits(c.at + 3, 2) and are_digits(c.at + 6, 2)):
        return DOUBTFUL
    if two_digits(c.at) > 23 or two_digits(c.at + 3) > 59 or two_digits(c.at + 6) > 59:
        return DOUBTFUL
    seconds = (two_digits(c.at) * 60 + two_digits(c.at + 3)) * 60 + two_digits(c.at + 6)
    c.at += 8
    if take(c, 46):
        while is_digit(c) and digits < 7:
            fraction = fraction * 10 + (c.at[0] - 48)
            digits += 1
            c.at += 1
        if not 1 <= digits <= 6:
            return DOUBTFUL
    microseconds[0] = seconds * 1000000 + fraction * TENS[6 - digits]
    return FINE


cdef int read_zone(Cursor* c, int64_t* microseconds) noexcept nogil:
    """Read `Z` or `+HH:MM`."""
    cdef bint minus
    microseconds[0] = 0
    if take(c, 90):
        return FINE
    minus = take(c, 45)
    if not minus and not take(c, 43):
        return DOUBTFUL
    if c.end - c.at < 5 or not (are_digits(c.at, 2) and c.at[2] == 58 and are_digits(c.at + 3, 2)):
        return DOUBTFUL
    if two_digits(c.at) > 23 or two_digits(c.at + 3) > 59:
        return DOUBTFUL
    microseconds[0] = (two_digits(c.at) * 60 + two_digits(c.at + 3)) * <int64_t>60000000
    if minus:
        microseconds[0] = -microseconds[0]
    c.at += 5
    return FINE


cdef int time_cell(Node* node, Cursor* c) noexcept nogil:
    cdef int64_t days, clock, zone = 0
    if not take(c, 34) or read_date(c, &days) or not (take(c, 84) or take(c, 32)) or read_clock(c, &clock):
        return DOUBTFUL
    if node.zone and read_zone(c, &zone) or not take(c, 34):
        return DOUBTFUL
    if reserve(node):
        return NO_MEMORY
    days = days * 86400000000LL + clock - zone
    memcpy(node.values + 8 * node.count, &days, 8)
    set_valid(node)
    return FINE
