# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""`produce` compiled: the surface of `produce_interpreted.py`, which documents each part, with C's integers.

Beside it `DrawnTable`, a table of keys that only C is fast enough to do without memory.
"""

cimport cython
from cpython.array cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from os import urandom

from confluent_kafka import KafkaException, Producer

from producer.decisions.librdkafka_partitioners import ClientPartitioner
from producer.decisions.key_mapping import DRAWS, headers_length, key_bytes, sent_bytes, slots_for
from producer.traffic_counts import Count

# Of a key and its length; the four of librdkafka's partitioners.
ctypedef uint32_t (*Hash)(const unsigned char*, Py_ssize_t) noexcept nogil

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef object send = Producer.produce


@cython.final
cdef class PartitionCounts:
    """Records and bytes per partition; `cells` holds the two alternately."""

    cdef array cells

    def __init__(self):
        self.cells = array("q")

    def __len__(self):
        return len(self.cells) // 2

    def grow(self, Py_ssize_t partitions):
        """Make room for this many partitions, in place and never smaller."""
        self.cells.extend(array("q", [0, 0]) * (partitions - len(self)))

    def add(self, Py_ssize_t partition, long long size, long long records=1):
        """Add records and their bytes; negative numbers subtract."""
        self.cells[2 * partition] += records
        self.cells[2 * partition + 1] += size

    cdef inline long long count(self, Py_ssize_t partition, Py_ssize_t size) noexcept:
        """Count a record of a partition that is known to exist; return the partition's bytes."""
        cdef long long* cell = self.cells.data.as_longlongs + 2 * partition
        cell[0] += 1
        cell[1] += size
        return cell[1]

    def of(self, Py_ssize_t partition):
        """Return the count of one partition."""
        return Count(self.cells[2 * partition], self.cells[2 * partition + 1])


cdef extern from *:
    """
    #define GOLDEN 0x9E3779B97F4A7C15ULL
    """
    const uint64_t GOLDEN


cdef inline uint64_t finalized(uint64_t value) noexcept nogil:
    value = (value ^ value >> 30) * <uint64_t>0xBF58476D1CE4E5B9
    value = (value ^ value >> 27) * <uint64_t>0x94D049BB133111EB
    return value ^ value >> 31


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    return finalized((value + 1) * GOLDEN)


@cython.final
cdef class DrawnTable:
    """The sequence of `key_mapping.hrw_table`, computed at each look-up.

    A table of 10,000 partitions takes 2 MB: a key that was not seen for a while misses the caches, and this takes six
    times as long as the draws. They read one bit for each partition.
    """

    cdef bytes bits
    cdef array members
    cdef const unsigned char* inside
    cdef uint32_t slots
    cdef uint64_t last
    cdef uint64_t draws

    def __init__(self, Py_ssize_t partitions, tuple members not None):
        cdef Py_ssize_t member
        universe = 1 << max(partitions - 1, 0).bit_length()
        bits = bytearray(universe // 8 + 1)
        for member in members:
            bits[member >> 3] |= 1 << (member & 7)
        self.bits = bytes(bits)
        self.inside = <const unsigned char*>PyBytes_AS_STRING(self.bits)
        self.members = array("I", members)
        self.slots = slots_for(partitions)
        self.last = universe - 1
        self.draws = DRAWS

    def __len__(self):
        return self.slots

    def __getitem__(self, Py_ssize_t slot):
        if not 0 <= slot < self.slots:
            raise IndexError(slot)
        return self.winner(slot)

    cdef inline Py_ssize_t winner(self, uint32_t slot) noexcept:
        # One draw after another: compilers turn a block of draws into vectors, whose 64-bit products are slow.
        cdef uint64_t at = (slot * self.draws + 1) * GOLDEN
        cdef uint64_t end = at + self.draws * GOLDEN
        cdef uint64_t drawn
        while at != end:
            drawn = finalized(at) & self.last
            if self.inside[drawn >> 3] >> (drawn & 7) & 1:
                return <Py_ssize_t>drawn
            at += GOLDEN
        return self.best(slot)

    cdef Py_ssize_t best(self, uint32_t slot) noexcept:
        """Score all members for a slot that drew none, as `key_mapping._score_the_rest`."""
        cdef const unsigned int* members = self.members.data.as_uints
        cdef uint64_t own = mixed(slot)
        cdef uint64_t score, highest = 0
        cdef Py_ssize_t n, best = members[0]
        for n in range(len(self.members)):
            score = mixed(own ^ mixed(members[n] + (<uint64_t>1 << 32)))
            if score > highest:
                highest = score
                best = members[n]
        return best


@cython.final
cdef class Destinations:
    """Where one topic's records go now; attributes as those of `produce_interpreted.Destinations`."""

    counts = PartitionCounts

    cdef readonly object table
    cdef readonly uint32_t slots
    cdef readonly PartitionCounts keyed
    cdef readonly int partition
    cdef readonly PartitionCounts unkeyed
    cdef readonly long long switch_at
    cdef tuple objects  # the table where it is a tuple
    cdef const unsigned char* narrow  # the table where it is bytes
    cdef const unsigned short* wide  # the table where it is an array
    cdef DrawnTable drawn  # the table where it is drawn
    cdef Hash hash
    cdef readonly Py_ssize_t shortest_key

    def __init__(
        self,
        table,
        PartitionCounts keyed not None,
        int partition,
        PartitionCounts unkeyed not None,
        long long switch_at,
        partitioner=ClientPartitioner.MURMUR2_RANDOM,
        Py_ssize_t shortest_key=0,
    ):
        self.table = table
        self.slots = len(table)
        # `table` keeps the memory of the two pointers; an array that nobody resizes keeps its place.
        self.objects = None if isinstance(table, (bytes, array, DrawnTable)) else table
        self.drawn = table if isinstance(table, DrawnTable) else None
        self.narrow = <const unsigned char*>PyBytes_AS_STRING(table) if isinstance(table, bytes) else NULL
        self.wide = (<array>table).data.as_ushorts if isinstance(table, array) else NULL
        self.keyed = keyed
        self.partition = partition
        self.unkeyed = unkeyed
        self.switch_at = switch_at
        name = partitioner.removesuffix("_random")
        self.hash = crc32 if name == "consistent" else fnv1a if name == "fnv1a" else murmur2 if name == "murmur2" else scatter
        self.shortest_key = shortest_key

    def is_full(self):
        """Return whether records without a key should switch to another partition."""
        return self.unkeyed.cells[2 * self.partition + 1] >= self.switch_at

    def keyed_partition(self, bytes key not None):
        """Find a key's partition."""
        return self.partition_of(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    cdef inline Py_ssize_t partition_of(self, const char* key, Py_ssize_t size):
        cdef uint32_t slot = self.hash(<const unsigned char*>key, size) % self.slots
        if self.wide is not NULL:
            return self.wide[slot]
        if self.drawn is not None:
            return self.drawn.winner(slot)
        return <Py_ssize_t>self.objects[slot] if self.narrow is NULL else self.narrow[slot]


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


cdef inline Py_ssize_t view(object data, const char** start) except -1:
    """Find the bytes of a text or of bytes, without a copy of either."""
    cdef Py_ssize_t size
    if isinstance(data, bytes):
        start[0] = PyBytes_AS_STRING(data)
        return PyBytes_GET_SIZE(data)
    start[0] = PyUnicode_AsUTF8AndSize(data, &size)
    return size


cdef inline Py_ssize_t length(object data) except -1:
    """Measure a value that the base class has accepted; a queued record must not end in an error."""
    cdef const char* start = NULL
    return view(data if isinstance(data, (bytes, str)) else sent_bytes(data) or b"", &start)


def produce(
    self, topic, value=None, key=None, partition=-1, callback=None, on_delivery=None, timestamp=0, headers=None
):
    """Send a record, as `confluent_kafka.Producer.produce`, to a leader of the own zone.

    Raises:
        BufferError: the queue is full; poll and call again.
        KafkaException: the client refused the record.
    """
    cdef const char* start = NULL
    cdef Py_ssize_t size, chosen
    cdef PyObject* found = PyDict_GetItemWithError(self._destinations, topic)
    # A reference is taken at once: the code below may run other code, perhaps of another thread, which replaces it.
    cdef Destinations destinations = None if found is NULL else <Destinations?><object>found
    # One callback only: the base class ignores `on_delivery` when `callback` is given, even as None. Compared with
    # None, because a callable may be false, such as an empty subclass of list.
    delivered = on_delivery if callback is None else callback
    if destinations is None or partition != -1:
        self._produce_uncommon(topic, value, key, partition, delivered, timestamp, headers)
        return
    cdef bint unkeyed = key is None
    if unkeyed:
        size = 0
        chosen = destinations.partition
    else:
        hashed = key if isinstance(key, (bytes, str)) else key_bytes(key)
        size = view(hashed, &start)
        unkeyed = size < destinations.shortest_key
        chosen = destinations.partition if unkeyed else destinations.partition_of(start, size)
    # Default arguments are left out: parsing them costs the base class as much as a look-up costs here.
    try:
        if delivered is None and headers is None and timestamp == 0:
            send(self, topic, value, key, chosen)
        else:
            send(self, topic, value, key, chosen, self._reports.before(delivered, headers), None, timestamp, headers)
            size += headers_length(headers)
    except KafkaException as refusal:
        self._produce_refused(refusal, topic, value, key, delivered, timestamp, headers)
        return
    if value is not None:
        size += length(value)
    if not unkeyed:
        destinations.keyed.count(chosen, size)
    elif destinations.unkeyed.count(chosen, size) >= destinations.switch_at:
        self._topics_in_use.advance(topic, destinations)
    elif size == 0:
        self._topics_in_use.advance_after_empty(topic, destinations)
