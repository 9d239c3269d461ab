# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The hot path compiled: the surface of `interpreted_path.py`, which says what each part is for, with C's integers."""

cimport cython
from cpython.array cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from confluent_kafka import KafkaException, Producer

from producer.decisions.key_mapping import key_bytes, sent_bytes
from producer.traffic_counts import Count

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef object send = Producer.produce


@cython.final
cdef class Sent:
    """Records and bytes per partition; `cells` holds the two by turns."""

    cdef array cells

    def __init__(self):
        self.cells = array("q")

    def __len__(self):
        return len(self.cells) // 2

    def grow(self, Py_ssize_t partitions):
        """Make room for so many partitions, in place and never smaller."""
        self.cells.extend(array("q", [0, 0]) * (partitions - len(self)))

    def add(self, Py_ssize_t partition, long long size, long long records=1):
        """Count a record of so many bytes; both negative take one back."""
        self.cells[2 * partition] += records
        self.cells[2 * partition + 1] += size

    cdef inline long long count(self, Py_ssize_t partition, Py_ssize_t size) noexcept:
        """Count a record of a partition that is known to be there, and say what its bytes add up to."""
        cdef long long* cell = self.cells.data.as_longlongs + 2 * partition
        cell[0] += 1
        cell[1] += size
        return cell[1]

    def of(self, Py_ssize_t partition):
        """Say what a partition was sent."""
        return Count(self.cells[2 * partition], self.cells[2 * partition + 1])


@cython.final
cdef class Lane:
    """Where one topic's records go now; attributes as those of `_interpreted.Lane`."""

    counts = Sent

    cdef readonly object table
    cdef readonly uint32_t slots
    cdef readonly Sent keyed
    cdef readonly int partition
    cdef readonly Sent unkeyed
    cdef readonly long long switch_at
    cdef tuple wide  # the table where it is a tuple
    cdef const unsigned char* narrow  # the table where it is bytes

    def __init__(self, table, Sent keyed not None, int partition, Sent unkeyed not None, long long switch_at):
        self.table = table
        self.slots = len(table)
        self.wide = None if isinstance(table, bytes) else table
        self.narrow = <const unsigned char*>PyBytes_AS_STRING(table) if isinstance(table, bytes) else NULL
        self.keyed = keyed
        self.partition = partition
        self.unkeyed = unkeyed
        self.switch_at = switch_at

    def is_full(self):
        """Tell whether records without a key should move on to another partition."""
        return self.unkeyed.cells[2 * self.partition + 1] >= self.switch_at

    def place(self, bytes key not None):
        """Find a key's partition."""
        return self.partition_of(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    cdef inline Py_ssize_t partition_of(self, const char* key, Py_ssize_t size):
        cdef uint32_t slot = murmur2(<const unsigned char*>key, size) % self.slots
        return <Py_ssize_t>self.wide[slot] if self.narrow is NULL else self.narrow[slot]


cdef inline uint32_t murmur2(const unsigned char* key, Py_ssize_t size) noexcept nogil:
    # As `org.apache.kafka.common.utils.Utils.murmur2`, sign bit dropped. Words are read as they lie: little endian.
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


cdef inline Py_ssize_t view(object data, const char** start) except -1:
    """Find the bytes of a text or of bytes, without a copy of either."""
    cdef Py_ssize_t size
    if isinstance(data, bytes):
        start[0] = PyBytes_AS_STRING(data)
        return PyBytes_GET_SIZE(data)
    start[0] = PyUnicode_AsUTF8AndSize(data, &size)
    return size


cdef inline Py_ssize_t length(object data) except -1:
    """Measure a value that the base class has taken; a record that was queued must not end in an error."""
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
    cdef PyObject* found = PyDict_GetItemWithError(self._lanes, topic)
    # Held at once: what follows may run other code, perhaps of another thread, which puts another lane in its place.
    cdef Lane lane = None if found is NULL else <Lane?><object>found
    # One callback only: the base class does not see `on_delivery` behind a `callback` of None. Not by its truth: a
    # callable that collects is false while it is empty.
    told = on_delivery if callback is None else callback
    if lane is None or partition != -1:
        self._produce_aside(topic, value, key, partition, told, timestamp, headers)
        return
    if key is None:
        size = 0
        chosen = lane.partition
    else:
        hashed = key if isinstance(key, (bytes, str)) else key_bytes(key)
        size = view(hashed, &start)
        chosen = lane.partition_of(start, size)
    # Arguments that say nothing are left out: reading them costs the base class what a look-up costs here.
    try:
        if told is None and headers is None and timestamp == 0:
            send(self, topic, value, key, chosen)
        else:
            send(self, topic, value, key, chosen, told, None, timestamp, headers)
    except KafkaException as refusal:
        self._produce_after(refusal, topic, value, key, told, timestamp, headers)
        return
    if value is not None:
        size += length(value)
    if key is not None:
        lane.keyed.count(chosen, size)
    elif lane.unkeyed.count(chosen, size) >= lane.switch_at:
        self._router.advance(topic, lane)
