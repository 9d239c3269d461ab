# cython: language_level=3, boundscheck=False, wraparound=False
"""`consume` compiled: the step that only fetches, and the cutting of records read ahead into lists.

`RecordSteps` does all other steps, and arms this one. 1,000 records push the code and the objects of a step out of the
processor's cache. A step in Python then takes 20 us, as much as 80 records cost. So this step touches as
little memory as it can: it keeps what it needs in one object, and asks librdkafka itself for the positions.

The handlers of signals run at the interpreter's checks. There is none in C, so the only ones here are those in the calls
of confluent-kafka's `consume` and of functions in Python.
"""

cimport cython
from cpython.contextvars cimport PyContextVar_Get
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uintptr_t

import ctypes
import time
from importlib.metadata import version

from confluent_kafka import Consumer, KafkaException, TopicPartition, cimpl

cdef extern from *:
    """
    #include <stdint.h>

    /* rd_kafka_topic_partition_t and its list, public structures of librdkafka */
    typedef struct {
        char *topic;
        int32_t partition;
        int64_t offset;
        void *metadata;
        size_t metadata_size;
        void *opaque;
        int err;
        void *hidden;
    } Place;
    typedef struct {
        int count;
        int size;
        Place *places;
    } Places;

    #define move(to, at, list, from) \\
        (PyList_SET_ITEM(to, at, PyList_GET_ITEM(list, from)), Py_INCREF(Py_None), PyList_SET_ITEM(list, from, Py_None))
    """
    ctypedef struct Place:
        char* topic
        int32_t partition
        int64_t offset
    ctypedef struct Places:
        int count
        Place* places
    void move(list to, Py_ssize_t at, list source, Py_ssize_t place) noexcept

cdef extern from "Python.h":
    list PyList_New(Py_ssize_t length)
    Py_ssize_t PyList_GET_SIZE(list one) noexcept
    unsigned long PyThread_get_thread_ident() noexcept
    Py_ssize_t PyObject_LengthHint(object one, Py_ssize_t default) except -1

ctypedef Places* (*PlacesNew)(int) noexcept
ctypedef Place* (*PlacesAdd)(Places*, const char*, int32_t) noexcept
ctypedef void (*PlacesDestroy)(Places*) noexcept
ctypedef int (*Position)(void*, Places*) noexcept

cdef PlacesNew places_new = NULL
cdef PlacesAdd places_add = NULL
cdef PlacesDestroy places_destroy = NULL
cdef Position position = NULL

cdef enum:
    IDLE = 0  # a step for RecordSteps
    ARMED = 1
    WITHIN = 2

cdef object identity = cimpl._reentry_identity_var  # of a call of asyncio, see CallGate
cdef object NO_WAIT = 0.0
cdef double SHORTEST_WAIT_S = 0.001  # librdkafka drops a fraction of a millisecond
cdef object monotonic = time.monotonic


cdef void find_functions():
    """Find them in the library that confluent-kafka has loaded; `position` stays NULL if it hides one.

    Also in releases other than those whose objects begin with librdkafka's client, as far as known.
    """
    global places_new, places_add, places_destroy, position
    if not version("confluent-kafka").startswith("2.16."):
        return
    names = ("topic_partition_list_new", "topic_partition_list_add", "topic_partition_list_destroy", "position")
    try:
        library = ctypes.CDLL(cimpl.__file__)
        found = [ctypes.cast(getattr(library, f"rd_kafka_{name}"), ctypes.c_void_p).value for name in names]
    except (AttributeError, OSError):
        return
    places_new = <PlacesNew><uintptr_t>found[0]
    places_add = <PlacesAdd><uintptr_t>found[1]
    places_destroy = <PlacesDestroy><uintptr_t>found[2]
    position = <Position><uintptr_t>found[3]


find_functions()
TAKES_RECORDS = position is not NULL


cdef inline void* handle_of(object client) noexcept:
    """Read the handle of a `confluent_kafka.Consumer`, the first word after the header; NULL once it is closed."""
    return (<void**>(<char*><PyObject*>client + sizeof(PyObject)))[0]


@cython.final
cdef class Parts:
    """Yields the records of a list in lists of one length; the last one may be shorter.

    It moves the references without an access to the records. The given list must have no other user, because it is left
    with None in their places: the collector shows it to debuggers, which a list with NULL would crash.
    """

    cdef list whole
    cdef Py_ssize_t length, at

    def __init__(self, list whole not None, Py_ssize_t length):
        self.whole = whole
        self.length = length
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == PyList_GET_SIZE(self.whole):
            raise StopIteration
        return self.cut(self.length)

    def __length_hint__(self):
        return (PyList_GET_SIZE(self.whole) - self.at + self.length - 1) // self.length

    def __copy__(self):
        return Parts(self.whole[self.at:], self.length)

    cdef list cut(self, Py_ssize_t most):
        """Return the next part of at most this length; empty at the end."""
        cdef Py_ssize_t begin = self.at, at
        cdef Py_ssize_t count = min(most, PyList_GET_SIZE(self.whole) - begin)
        # Taken before the list is made: Python 3.11 may collect garbage there, and so run code that takes a part, too.
        self.at = begin + count
        cdef list part = PyList_New(count)
        for at in range(count):
            move(part, at, self.whole, begin + at)
        return part


@cython.final
cdef class Readiness:
    """Whether a quick step may run: the state of a QuickStep, and how many calls wait for the gate."""

    cdef public int state
    cdef public int waiting


@cython.final
cdef class QuickStep:
    """Takes records for `consume` in one step, if nothing else is due.

    Contract:
    * As with RecordSteps, a step holds the gate, and counts as a poll for max.poll.interval.ms.
    * RecordSteps arms it at the end of a step, for the calls of that thread. Each entry of the gate sets the state to 0,
      so nothing has changed at the next call: client, partitions and ownership are the same, and no callback runs.
    * It never waits for the gate, and is not armed while another call does.

    Args:
        readiness: of the gate.
        lock: the gate's, held by the step.
        fetching: the source of the records.
        owned: returns the current ownership.
        most_pause_s: seconds without records, after which this is a step for RecordSteps.
        wait_s: longest wait for records in one call of the client.
        least: the number of records to fetch at once for calls that need fewer.

    Attributes:
        delivered_at: when it found records last, in seconds of `time.monotonic`.
    """

    cdef readonly double delivered_at
    cdef double commit_at, most_pause_s, wait_s
    cdef unsigned long thread
    cdef Py_ssize_t least, count, size
    cdef Readiness readiness
    cdef object acquire, release, client, ahead, fetching, owned
    cdef Parts parts
    cdef list asked, came
    cdef Places* places
    cdef void* handle

    def __cinit__(self):
        self.places = NULL
        self.handle = NULL

    def __dealloc__(self):
        if self.places is not NULL:
            places_destroy(self.places)

    def __init__(self, Readiness readiness not None, lock, fetching, owned, *, most_pause_s, wait_s, least):
        self.readiness = readiness
        self.acquire, self.release = lock.acquire, lock.release
        self.fetching = fetching
        self.owned = owned
        self.ahead = fetching.ahead
        self.came = fetching.callbacks.came
        self.most_pause_s, self.wait_s = most_pause_s, wait_s
        self.least = least

    def arm(self, size, double now, double commit_at):
        """Take the next steps of calls of `consume(size)`, until it is time to commit; called within a step.

        Args:
            size: the number of records of a call.
            now: the current time.
            commit_at: the time of the next automatic commit.
        """
        fetching = self.fetching
        client = fetching.client
        self.size = 0
        if (
            position is NULL
            or type(size) is not int
            or size < 1
            or type(client) is not Consumer
            or of_task()
            or self.ahead.interrupted
            or PyObject_LengthHint(self.ahead.records, 0)
            or self.owned() is not fetching._checked
        ):
            return
        self.use(client, fetching._asked)
        fetching._before.forget()
        if self.readiness.waiting or not self.places.count:
            return
        self.size = size
        self.count = max(1, (max(self.least, <Py_ssize_t>fetching.fewest_ahead) + self.size - 1) // self.size)
        self.ahead.batch_size = size
        self.delivered_at = now
        self.commit_at = commit_at
        self.thread = PyThread_get_thread_ident()
        self.readiness.state = ARMED

    def takes(self, size):
        """Return whether it was armed last time, for calls of `consume(size)` of this thread."""
        return self.size == size and self.thread == PyThread_get_thread_ident()

    cdef int use(self, client, list asked) except -1:
        """Ask this client for the positions of these partitions."""
        cdef Places* places
        if client is self.client and asked is self.asked:
            return 0
        self.client, self.asked, self.handle = client, asked, handle_of(client)
        places = places_new(<int>len(asked))
        for one in asked:
            topic = one.topic.encode()
            places_add(places, topic, one.partition)
        if self.places is not NULL:
            places_destroy(self.places)
        self.places = places
        return 0

    def take(self, list found not None, Py_ssize_t size, double timeout, now):
        """Return the records of a call of `consume(size)`; no more for a step of RecordSteps.

        Args:
            found: the records that the call has.
            size: their number at the end; a signal's handler may have armed it for another one since the call began.
            timeout: of the call, in seconds; negative for no limit.
            now: the current time, in seconds of `time.monotonic`.
        """
        cdef list more
        # Others are held after a part that is short, or if a signal's handler has consumed: they come first.
        if self.size != size or PyList_GET_SIZE(found) >= size or PyObject_LengthHint(self.ahead.batches, 0):
            return found
        more = self.step(PyList_GET_SIZE(found), timeout, now)
        if not found:
            return more  # adding them would access each record
        found += more
        return found

    cdef list step(self, Py_ssize_t have, double timeout, now):
        """Return the records that a call lacks which has some."""
        cdef double at = now
        cdef list found
        if self.readiness.state != ARMED or at >= self.commit_at or at - self.delivered_at > self.most_pause_s:
            return []
        if timeout != timeout:  # NaN, which RecordSteps' caller refuses: it must not wait first
            return []
        if self.thread != PyThread_get_thread_ident() or of_task() or not self.acquire(False):
            return []
        self.readiness.state = WITHIN
        try:
            self.ahead.polled_at = now
            found = self.fetch(self.size - have, at, at + timeout if timeout >= 0 else INFINITY)
            if found:
                self.delivered_at = at
                if self.readiness.state == WITHIN:
                    self.readiness.state = ARMED
            return found
        finally:
            if self.readiness.state == WITHIN:
                self.readiness.state = IDLE
            self.release()

    cdef list fetch(self, Py_ssize_t lacks, double now, double until):
        """Return the records that the call lacks, and hold the others; wait if there are not enough."""
        cdef list fetched = []
        cdef list later = []
        if handle_of(self.client) is not self.handle or self.handle is NULL or position(self.handle, self.places):
            return []
        try:
            if self.count > 1:
                fetched = self.client.consume(self.size * (self.count - 1) + lacks, NO_WAIT)
            lacking = lacks - PyList_GET_SIZE(fetched)
            if lacking > 0 and not PyList_GET_SIZE(self.came) and self.readiness.state == WITHIN:
                later = self.wait(lacking, now, min(until, self.commit_at, self.delivered_at + self.most_pause_s))
                if fetched:
                    fetched += later
                else:
                    fetched = later
                later = []
            if PyList_GET_SIZE(self.came):
                self.ahead.interrupted = True  # until RecordSteps raises an error of a callback
            if not fetched:
                return fetched
            due = self.ahead.interrupted
            if due or self.readiness.state != WITHIN or fetched[PyList_GET_SIZE(fetched) - 1].error() is not None:
                fetched = self.fetching.deliverable(fetched, self.owned)
            if self.readiness.state != WITHIN:
                # A signal's handler may have consumed, so that others are held, and armed this step again.
                self.readiness.state = IDLE
                later = fetched[lacks:]
                del fetched[lacks:]
                if later:
                    self.fetching.return_to_ahead(later)
                later = []
            elif self.count > 1:
                self.ahead.batches = self.parts = Parts(fetched, self.size)
                fetched = self.parts.cut(lacks)
            if due:  # after the records are held: a callback may seek
                self.fetching.callbacks.call()
            return fetched
        except KafkaException as error:
            self.fetching.keep_fetched([fetched], self.size, error)
            return []
        except BaseException:
            # In C until all is kept: at the start of a function in Python a second signal may come.
            before = self.fetching._before
            before.noted, before.later = self.positions(), {}
            self.ahead.interrupted = before.interrupted = True
            self.fetching.in_hand.left.extend((fetched, later))
            self.fetching.redeliver_left()
            raise

    cdef list wait(self, size, double now, double until):
        """Return the records of one call; wait for each time in turn, as RecordSteps does."""
        cdef list fetched
        while True:
            fetched = self.client.consume(size, min(until - now, self.wait_s))
            if fetched or PyList_GET_SIZE(self.came) or self.ahead.interrupted:
                return fetched
            # A call waits for the gate, or the handler of a signal made one: another client, other positions.
            if self.readiness.state != WITHIN:
                return fetched
            now = monotonic()
            if until - now < SHORTEST_WAIT_S:
                return fetched
            self.ahead.polled_at = now

    cdef list positions(self):
        """Return the positions before the call."""
        cdef int at
        cdef Place* one
        found = []
        for at in range(self.places.count):
            one = self.places.places + at
            found.append(TopicPartition(one.topic.decode(), one.partition, one.offset))
        return found


cdef bint of_task() except -1:
    """Whether this is a call of asyncio."""
    cdef PyObject* task = NULL
    PyContextVar_Get(identity, NULL, &task)
    if task is NULL:
        return False
    found = <object>task
    Py_DECREF(found)
    return bool(found)
