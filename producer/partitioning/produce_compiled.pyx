# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""`produce` compiled: the surface of `produce_interpreted.py`, which documents each part, with C's integers.

Beside it `DrawnTable`, a table of keys that only C is fast enough to do without memory, and `DirectQueue`, which calls
librdkafka without confluent-kafka in between.
"""

cimport cython
from cpython.array cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

import ctypes
import weakref
from os import getpid, urandom

from confluent_kafka import KafkaException, Producer, cimpl

from producer.decisions.partitioner_names import ClientPartitioner
from producer.partitioning.deliveries_compiled import Deliveries  # a part of this module's surface
from producer.decisions.record_bytes import headers_length, key_bytes, sent_bytes
from producer.decisions.rendezvous_slots import DRAWS, slots_for
from producer.traffic_cost import Count

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef object send = Producer.produce

# The defaults of the base class, compared by identity: `-1.0 == -1`, but the base class refuses a float.
cdef object ANY_PARTITION = -1
cdef object NO_TIMESTAMP = 0

include "produce_compiled_queue.pxi"
include "produce_compiled_slots.pxi"
include "produce_compiled_hashes.pxi"


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


@cython.final
cdef class Destinations:
    """Where one topic's records go now; attributes as those of `produce_interpreted.Destinations`."""

    counts = PartitionCounts
    all_of = range

    cdef readonly object table
    cdef readonly uint32_t slots
    cdef readonly PartitionCounts keyed
    cdef readonly int partition
    cdef readonly PartitionCounts unkeyed
    cdef readonly long long switch_at
    cdef bint same  # whether each partition is its own slot
    cdef tuple objects  # the table where it is a tuple
    cdef const unsigned char* narrow  # the table where it is bytes
    cdef const unsigned short* wide  # the table where it is an array
    cdef DrawnTable drawn  # the table where it is drawn
    cdef Hash hash
    cdef readonly Py_ssize_t shortest_key
    cdef DirectQueue queue
    cdef void* handle  # of the topic in `queue`; NULL where records go through confluent-kafka

    def __init__(
        self,
        table,
        PartitionCounts keyed not None,
        int partition,
        PartitionCounts unkeyed not None,
        long long switch_at,
        partitioner=ClientPartitioner.MURMUR2_RANDOM,
        Py_ssize_t shortest_key=0,
        before=None,  # murmur2 takes less time here than a look at the keys seen before
    ):
        self.table = table
        self.slots = len(table)
        # `table` keeps the memory of the two pointers; an array that is never resized keeps its place.
        self.same = isinstance(table, range)
        self.objects = None if isinstance(table, (bytes, array, range, DrawnTable)) else table
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
        self.queue = None
        self.handle = NULL

    def next_run(self, int partition, long long batch_bytes):
        """Return the same destinations, with another partition for this many more bytes without a key."""
        cdef Destinations new = Destinations.__new__(Destinations)
        new.table = self.table
        new.slots = self.slots
        new.same = self.same
        new.objects = self.objects
        new.drawn = self.drawn
        new.narrow = self.narrow
        new.wide = self.wide
        new.keyed = self.keyed
        new.partition = partition
        new.unkeyed = self.unkeyed
        new.switch_at = <long long>self.unkeyed.cells[2 * partition + 1] + batch_bytes
        new.hash = self.hash
        new.shortest_key = self.shortest_key
        new.queue = self.queue
        new.handle = self.handle
        return new

    cdef int connect(self, DirectQueue queue, topic) except -1:
        """Find the topic's handle, once for each destinations; the topic may be of a subclass of `str`."""
        self.queue = queue
        self.handle = queue.open_topic(str.__str__(topic)) if queue.client is not NULL else NULL
        return 0

    def is_full(self):
        """Return whether records without a key should switch to another partition."""
        return self.unkeyed.cells[2 * self.partition + 1] >= self.switch_at

    def keyed_partition(self, bytes key not None):
        """Find a key's partition."""
        return self.partition_of(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    def take_keyed(self, bytes key not None, Py_ssize_t size):
        """Find a key's partition, and count a record of this many bytes there."""
        cdef Py_ssize_t chosen = self.partition_of(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
        self.keyed.count(chosen, size)
        return chosen

    def take_unkeyed(self, Py_ssize_t size):
        """Count a record without a key; return whether such records should switch to another partition."""
        return self.unkeyed.count(self.partition, size) >= self.switch_at

    cdef inline Py_ssize_t partition_of(self, const char* key, Py_ssize_t size):
        cdef uint32_t slot = self.hash(<const unsigned char*>key, size) % self.slots
        if self.same:
            return slot
        if self.wide is not NULL:
            return self.wide[slot]
        if self.drawn is not None:
            return self.drawn.winner(slot)
        return <Py_ssize_t>self.objects[slot] if self.narrow is NULL else self.narrow[slot]


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
    cdef const char* value_start = NULL
    cdef Py_ssize_t size, chosen, key_size = 0, value_size = 0
    cdef PyObject* found = PyDict_GetItemWithError(self._kafka_azimuth_destinations, topic)
    # A reference is taken at once: the code below may run other code, perhaps of another thread, which replaces it.
    cdef Destinations destinations = None if found is NULL else <Destinations?><object>found
    # One callback only: the base class ignores `on_delivery` when `callback` is given, even as None. Compared with
    # None, because a callable may be false, such as an empty subclass of list.
    delivered = on_delivery if callback is None else callback
    if destinations is None or partition is not ANY_PARTITION:
        self._kafka_azimuth.produce_uncommon(self, topic, value, key, partition, delivered, timestamp, headers)
        return
    cdef bint unkeyed = key is None
    cdef bint plain = delivered is None and headers is None and timestamp is NO_TIMESTAMP
    cdef bint viewed = isinstance(value, (bytes, str))
    # confluent-kafka takes other buffers as well, and says which ones it refuses.
    cdef bint direct = plain and (viewed or value is None)
    if unkeyed:
        chosen = destinations.partition
    else:
        if isinstance(key, (bytes, str)):
            hashed = key
        else:
            hashed = key_bytes(key)
            direct = False
        key_size = view(hashed, &start)
        unkeyed = key_size < destinations.shortest_key
        chosen = destinations.partition if unkeyed else destinations.partition_of(start, key_size)
    if viewed:
        value_size = view(value, &value_start)
    if destinations.queue is None:
        destinations.connect(self._kafka_azimuth.direct, topic)
    # From the check of the client to the end of the call no other thread runs Python, so none closes the client.
    if not (
        direct
        and destinations.handle is not NULL
        and destinations.queue.client is not NULL
        and client_of(<PyObject*>self) is destinations.queue.client
        and enqueue(destinations.handle, chosen, COPY, value_start, value_size, start, key_size, NULL) == 0
    ):
        try:
            if plain:  # no default arguments: the base class takes as long to parse them as a look-up takes here
                send(self, topic, value, key, chosen)
            else:
                send(self, topic, value, key, chosen, self._kafka_azimuth.reports.before(delivered, headers), None, timestamp, headers)
        except KafkaException as refusal:
            self._kafka_azimuth.produce_refused(self, refusal, topic, value, key, delivered, timestamp, headers)
            return
    size = key_size + (value_size if viewed or value is None else length(value))
    if headers is not None:
        size += headers_length(headers)
    if not unkeyed:
        destinations.keyed.count(chosen, size)
    elif destinations.unkeyed.count(chosen, size) >= destinations.switch_at:
        self._kafka_azimuth.topics_in_use.advance(topic, destinations)
    elif size == 0:
        self._kafka_azimuth.topics_in_use.advance_after_empty(topic, destinations)
