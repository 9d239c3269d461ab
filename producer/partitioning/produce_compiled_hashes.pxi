"""The hashes of librdkafka's partitioners, and the random numbers in place of one."""

# Of a key and its length; the four of librdkafka's partitioners.
ctypedef uint32_t (*Hash)(const unsigned char*, Py_ssize_t) noexcept nogil


cdef uint32_t murmur2(const unsigned char* key, Py_ssize_t size) noexcept nogil:
    # As `org.apache.kafka.common.utils.Utils.murmur2`, sign bit cleared. Words are read in memory order: little endian.
    cdef uint32_t mix = 0x5BD1E995
    cdef uint32_t found = <uint32_t>0x9747B28C ^ <uint32_t>size
    cdef uint32_t word
    cdef Py_ssize_t at
    cdef Py_ssize_t whole = size & ~3
    for at in range(0, whole, 4):
        memcpy(&word, key + at, 4)
        word *= mix
        word ^= word >> 24
        word *= mix
        found = found * mix ^ word
    if size - whole == 3:
        found ^= <uint32_t>key[whole + 2] << 16
    if size - whole >= 2:
        found ^= <uint32_t>key[whole + 1] << 8
    if size - whole >= 1:
        found = (found ^ key[whole]) * mix
    found = (found ^ found >> 13) * mix
    return (found ^ found >> 15) & 0x7FFFFFFF


cdef uint32_t crc32(const unsigned char* key, Py_ssize_t size) noexcept nogil:
    cdef uint32_t found = 0xFFFFFFFF
    cdef Py_ssize_t at
    for at in range(size):
        found = crc_table[(found ^ key[at]) & 0xFF] ^ found >> 8
    return ~found


cdef uint32_t crc_table[256]


cdef void fill_crc_table() noexcept:
    # The polynomial of zlib and Ethernet, bits reversed.
    cdef uint32_t value
    cdef int byte, bit
    for byte in range(256):
        value = byte
        for bit in range(8):
            value = value >> 1 ^ (<uint32_t>0xEDB88320 if value & 1 else <uint32_t>0)
        crc_table[byte] = value


fill_crc_table()


cdef uint32_t fnv1a(const unsigned char* key, Py_ssize_t size) noexcept nogil:
    # As librdkafka, which takes the absolute value of a signed 32-bit hash.
    cdef uint32_t found = 0x811C9DC5
    cdef Py_ssize_t at
    for at in range(size):
        found = (found ^ key[at]) * <uint32_t>0x01000193
    return ~found + 1 if found >> 31 else found


cdef uint32_t scattered = int.from_bytes(urandom(4)) | 1


cdef uint32_t scatter(const unsigned char* key, Py_ssize_t size) noexcept nogil:
    # Marsaglia's xorshift (2003), whatever the key.
    global scattered
    scattered ^= scattered << 13
    scattered ^= scattered >> 17
    scattered ^= scattered << 5
    return scattered
