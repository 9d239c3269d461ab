# cython: language_level=3
"""Counts delivered records inside librdkafka: the part of `count="delivered"` that needs no Python for each record.

librdkafka calls interceptors for every delivered or failed record, in its own threads, whether or not the program
polls, and however the record was queued. The interceptors, in `deliveries_compiled_interceptors.pxi`, hold no lock of
Python's.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uintptr_t

import ctypes

from confluent_kafka import cimpl

include "deliveries_compiled_interceptors.pxi"

cdef tuple KIND_NAMES = ("unkeyed", "keyed", "explicit")


cdef bint can_count():
    """Find librdkafka's functions in the library that confluent-kafka has loaded; False if it lacks or hides one."""
    names = (
        "rd_kafka_topic_name",
        "rd_kafka_message_headers",
        "rd_kafka_header_get_all",
        "rd_kafka_conf_interceptor_add_on_conf_destroy",
        "rd_kafka_conf_interceptor_add_on_new",
        "rd_kafka_interceptor_add_on_acknowledgement",
        "rd_kafka_interceptor_add_on_send",
    )
    try:
        library = ctypes.CDLL(cimpl.__file__)
        for at, name in enumerate(names):
            functions[at] = <void*><uintptr_t>ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        return COUNTS_IN_C and loads_plugins(library)
    except (AttributeError, OSError, UnicodeError):
        return False


cdef bint loads_plugins(library):
    """Whether librdkafka was built to load plugins, and can load this module as one."""
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    loaded = library.rd_kafka_conf_set(conf, b"plugin.library.paths", __file__.encode(), None, ctypes.c_size_t(0))
    library.rd_kafka_conf_destroy(conf)
    return loaded == 0


@cython.final
cdef class Deliveries:
    """The delivered records of one client, by topic, partition and way, as librdkafka's threads count them.

    Contract:
    * It is for one client, which `making` makes. Figures stay readable after the client's end.
    * A record counts once, when it is delivered, with key, value and headers before compression; never if it fails.
    * `take` and `topics` are called under one lock.
    """

    is_possible = can_count()

    cdef Acks* acks

    def __cinit__(self, bint empty_is_null=False):
        self.acks = acks_new(empty_is_null) if Deliveries.is_possible else NULL

    def __dealloc__(self):
        if self.acks is not NULL:
            acks_release(self.acks)

    @property
    def is_started(self):
        """Whether the records of a client are counted."""
        return self.acks is not NULL and acks_started(self.acks)

    def plugins(self, theirs=None):
        """Return the client's `plugin.library.paths`, after the application's."""
        return f"{theirs};{__file__}" if theirs else __file__

    def making(self, construct, *arguments, **more):
        """Call the constructor of the client, whose configuration has the `plugins`."""
        set_pending(self.acks)
        try:
            construct(*arguments, **more)
        finally:
            set_pending(NULL)

    def explicitly(self, send, *arguments):
        """Call a function whose records have a partition that the application chose."""
        set_explicit(self.is_started)
        try:
            return send(*arguments)
        finally:
            set_explicit(False)

    def topics(self):
        """Return the topics with delivered records."""
        cdef Topic* topic
        cdef int bucket
        names = []
        for bucket in range(BUCKETS if self.acks is not NULL else 0):
            topic = first_of(self.acks, bucket)
            while topic is not NULL:
                names.append((<char*>topic.name).decode())
                topic = topic.next
        return names

    def take(self, str topic):
        """Return what was delivered since the last call: partition, way of the record, records, bytes."""
        cdef int64_t records = 0
        cdef int64_t size = 0
        cdef int32_t partition
        cdef int kind
        cdef Cell* cells
        name = topic.encode()
        cdef Topic* found = topic_found(self.acks, name) if self.acks is not NULL else NULL
        fresh = []
        for partition in range(found.partitions if found is not NULL else 0):
            cells = cells_seen(found, partition)
            for kind in range(KINDS if cells is not NULL else 0):
                if cell_take(cells + kind, &records, &size):
                    fresh.append((partition, KIND_NAMES[kind], records, size))
        return fresh
