"""Records given to librdkafka itself, without confluent-kafka in between."""

# Functions of librdkafka's public interface, with its handles of a client and of a topic as plain pointers.
ctypedef void* (*TopicNew)(void*, const char*, void*) noexcept
ctypedef void (*TopicDestroy)(void*) noexcept
ctypedef const char* (*Name)(void*) noexcept
ctypedef int (*Enqueue)(void*, int32_t, int, const void*, size_t, const void*, size_t, void*) noexcept

cdef TopicNew topic_new = NULL
cdef TopicDestroy topic_destroy = NULL
cdef Name client_name = NULL
cdef Enqueue enqueue = NULL

cdef enum:
    COPY = 2  # RD_KAFKA_MSG_F_COPY


cdef void find_functions():
    """Find them in the library that confluent-kafka has loaded; all stay NULL if it hides them."""
    global topic_new, topic_destroy, client_name, enqueue
    try:
        library = ctypes.CDLL(cimpl.__file__)
        names = ("rd_kafka_topic_new", "rd_kafka_topic_destroy", "rd_kafka_name", "rd_kafka_produce")
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]
    except (AttributeError, OSError):
        return
    topic_new = <TopicNew><uintptr_t>found[0]
    topic_destroy = <TopicDestroy><uintptr_t>found[1]
    client_name = <Name><uintptr_t>found[2]
    enqueue = <Enqueue><uintptr_t>found[3]


find_functions()


cdef inline void* client_of(PyObject* producer) noexcept:
    """Read the handle of a `confluent_kafka.Producer`, the first word after the header; NULL once it is closed."""
    return (<void**>(<char*>producer + sizeof(PyObject)))[0]


@cython.final
cdef class DirectQueue:
    """Queues records in librdkafka without confluent-kafka, which takes most of the time of a `produce`.

    For each record confluent-kafka (2.16) parses eight arguments, lets librdkafka find the topic by its name, and
    allocates a state for the delivery report, also without a callback; `poll` then takes the interpreter's lock for
    each report. This is only for records without callback, headers and timestamp. All others, and all records that
    librdkafka refuses here, go through confluent-kafka, whose errors the caller gets.

    Contract:
    * It may outlive the producer, because destinations refer to it: it is closed before the producer's memory is freed.
    * `start` follows the base class's constructor, and `close` precedes its `close`: the handles of topics must not
      outlive the client's. If the client was closed first, or belongs to the process before a fork, they are left.
    * Without `start`, or where a check fails, it stays closed, and every record goes through confluent-kafka.
    """

    cdef PyObject* owner
    cdef void* client
    cdef dict handles
    cdef long process

    def __cinit__(self, owner):
        # The only word that a constructor sets from NULL to an open client, if this is how confluent-kafka keeps it.
        self.owner = <PyObject*>owner if client_of(<PyObject*>owner) is NULL else NULL
        self.client = NULL
        self.handles = {}
        self.process = getpid()

    def start(self):
        """Find the client of the owner, which is open now, by the name that librdkafka gives its producers."""
        if enqueue is NULL or self.owner is NULL:
            return
        cdef void* found = client_of(self.owner)
        if found is not NULL and b"#producer-" in <bytes>client_name(found):
            self.client = found
            # Called before the producer's client is destroyed, also by the collector, and in any order of the garbage.
            weakref.finalize(<object>self.owner, self.close)

    @property
    def is_open(self):
        """Whether records may take this way."""
        return self.client is not NULL

    cdef void* open_topic(self, str topic) except? NULL:
        """Find the handle of a topic; NULL if there is none."""
        if topic in self.handles:
            return <void*><uintptr_t>self.handles[topic]
        name = topic.encode()
        cdef void* handle = topic_new(self.client, name, NULL)
        if handle is not NULL:
            self.handles[topic] = <uintptr_t>handle
        return handle

    def close(self):
        """Release the handles; may be called twice."""
        cdef void* client = self.client
        self.client = NULL
        handles, self.handles = self.handles, {}
        if client is not NULL and client_of(self.owner) is client and getpid() == self.process:
            for handle in handles.values():
                topic_destroy(<void*><uintptr_t>handle)
