# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops of a plan compiled: the surface of `plan_loops_interpreted.py`, which documents each part.

That module also handles claims that are not plain pairs of a text and a whole number.
"""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from assignors.hashing import murmur3_hash
from assignors.planner import plan_loops_interpreted

cdef extern from "Python.h":
    list PyList_New(Py_ssize_t length)
    void PyList_SET_ITEM(list one, Py_ssize_t at, object item) noexcept
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    void PyObject_GC_UnTrack(object one) noexcept

# Of `mix64`, see `assignors/hashing/murmur3_hash.py`.
cdef uint64_t FACTOR_1 = murmur3_hash._M1
cdef uint64_t FACTOR_2 = murmur3_hash._M2

cdef struct Candidate:
    uint64_t score
    int64_t member

# Up to this length sorting by insertion is the fastest.
cdef enum:
    FEW = 16


def mix_pairs(const uint64_t[:] nodes not None, const uint64_t[:] keys not None):
    mixed = np.empty((len(keys), len(nodes)), np.uint64)
    cdef uint64_t[:, ::1] into = mixed
    cdef uint64_t value
    cdef Py_ssize_t node, key
    for key in range(keys.shape[0]):
        for node in range(nodes.shape[0]):
            value = nodes[node] ^ keys[key]
            value = (value ^ (value >> 30)) * FACTOR_1
            value = (value ^ (value >> 27)) * FACTOR_2
            into[key, node] = value ^ (value >> 31)
    return mixed


def give_best(
    const uint64_t[:] score not None,
    int64_t[:] load not None,
    const int64_t[:] limit not None,
    const int64_t[:] low,
    Py_ssize_t count,
    int64_t spare,
):
    cdef Py_ssize_t members = load.shape[0], needed = count, at
    cdef Candidate* some = <Candidate*>PyMem_Malloc(2 * members * sizeof(Candidate))
    if some is NULL:
        raise MemoryError
    given = np.empty(count, np.int32)
    cdef int32_t[::1] takers = given
    try:
        at = collect(score, load, limit, some)
        if at < count:
            return None
        sort_best(some, some + members, at, count, &takers[0])
    finally:
        PyMem_Free(some)
    if low is not None:
        needed = 0
        for at in range(count):
            needed += load[takers[at]] < low[takers[at]]
        if count - needed > spare:
            return None
    for at in range(count):
        load[takers[at]] += 1
    return given, needed


cdef Py_ssize_t collect(
    const uint64_t[:] score, const int64_t[:] load, const int64_t[:] limit, Candidate* some
) noexcept:
    """Write the members below their limits; return their number."""
    cdef Py_ssize_t member, found = 0
    for member in range(load.shape[0]):  # without a branch: one that is not counted is overwritten
        some[found].score, some[found].member = score[member], member
        found += load[member] < limit[member]
    return found


cdef void sort_best(Candidate* some, Candidate* spare, Py_ssize_t length, Py_ssize_t count, int32_t* takers) noexcept:
    """Write the members of the `count` best, best first: a quicksort that leaves out the parts behind them.

    Args:
        some: the candidates; their order is not kept.
        spare: memory of the same length; the two change roles at each step.
        length: of both.
        count: how many are wanted; none if it is 0 or less.
        takers: where their members are written.
    """
    cdef Py_ssize_t middle, at
    while length > FEW and count > 0:
        middle = divide(some, spare, length)
        some, spare = spare, some
        if middle <= length - middle:  # calls itself for the shorter part, so it is never deep
            sort_best(some, spare, middle, count, takers)
            some, spare, takers = some + middle, spare + middle, takers + middle
            length -= middle
            count -= middle
        else:
            sort_best(some + middle, spare + middle, length - middle, count - middle, takers + middle)
            length = middle
    if count > 0:
        sort_few(some, length)
        for at in range(min(length, count)):
            takers[at] = <int32_t>some[at].member


cdef Py_ssize_t divide(const Candidate* some, Candidate* into, Py_ssize_t length) noexcept:
    """Copy those that are better than a median of three to the front, and the others to the end; count the better ones."""
    cdef Candidate pivot = median(some[0], some[length // 2], some[length - 1])
    cdef Candidate one
    cdef Py_ssize_t at, front = 0, end = length - 1
    cdef bint better
    for at in range(length):  # without a branch: each is written to both places
        one = some[at]
        better = is_better(one, pivot)
        into[front] = into[end] = one
        front += better
        end -= not better
    return front


cdef inline Candidate median(Candidate one, Candidate two, Candidate three) noexcept:
    if is_better(two, one):
        one, two = two, one
    if is_better(two, three):
        return two
    return three if is_better(one, three) else one


cdef inline bint is_better(Candidate one, Candidate other) noexcept:
    """Compare by score, of equal ones by number, without a branch."""
    return (one.score > other.score) | ((one.score == other.score) & (one.member < other.member))


cdef void sort_few(Candidate* some, Py_ssize_t length) noexcept:
    """Sort by insertion, best first."""
    cdef Candidate one
    cdef Py_ssize_t at, place
    for at in range(1, length):
        one, place = some[at], at
        while place > 0 and is_better(one, some[place - 1]):
            some[place] = some[place - 1]
            place -= 1
        some[place] = one


def claimed_places(dict number_of not None, list owned not None, const int64_t[:] first not None):
    cdef Py_ssize_t most = 0, found = 0, holder
    for claims in owned:
        if type(claims) is not frozenset:
            return plan_loops_interpreted.claimed_places(number_of, owned, first.base)
        most += len(claims)
    places, members = np.empty(most, np.int64), np.empty(most, np.int64)
    cdef int64_t[::1] at = places, member = members
    cdef int64_t place
    for holder in range(len(owned)):
        for claim in <frozenset>owned[holder]:
            place = place_of(claim, number_of, first)
            if place >= 0:
                at[found], member[found] = place, holder
                found += 1
            elif place == UNUSUAL:
                return plan_loops_interpreted.claimed_places(number_of, owned, first.base)
    return places[:found], members[:found]


cdef enum:
    NOT_THERE = -1
    UNUSUAL = -2


cdef int64_t place_of(object claim, dict number_of, const int64_t[:] first) except -3:
    """Return the number of the claimed partition, NOT_THERE if there is none, or UNUSUAL for all but plain pairs."""
    cdef PyObject* known
    cdef Py_ssize_t topic
    cdef long long number
    cdef int overflow = 0
    if type(claim) is not tuple or PyTuple_GET_SIZE(claim) < 2:
        return UNUSUAL
    name, partition = (<tuple>claim)[0], (<tuple>claim)[1]
    if type(name) is not str or type(partition) is not int:
        return UNUSUAL
    known = PyDict_GetItemWithError(number_of, name)
    if known is NULL:
        return NOT_THERE
    topic = <object>known
    number = PyLong_AsLongLongAndOverflow(partition, &overflow)
    if overflow or number < 0 or number >= first[topic + 1] - first[topic]:
        return NOT_THERE
    return first[topic] + number


def pairs_of_members(list names not None, const int64_t[:] first not None, const int32_t[:] owner not None, Py_ssize_t members):
    cdef int64_t[::1] ends
    cdef int32_t[::1] topics, numbers
    cdef Py_ssize_t topic, most = 0
    for topic in range(len(names)):
        most = max(most, first[topic + 1] - first[topic])
    ends, topics, numbers = sorted_by_owner(first, owner, members)
    cdef list known = list(range(most))  # one object for each number, in all topics
    return [
        pairs_between(names, known, topics, numbers, 0 if member == 0 else ends[member - 1], ends[member])
        for member in range(members)
    ]


cdef tuple sorted_by_owner(const int64_t[:] first, const int32_t[:] owner, Py_ssize_t members):
    """Sort by counting: return where the partitions of each member end, and topic and number of each partition."""
    found = np.zeros(members, np.int64), np.empty(owner.shape[0], np.int32), np.empty(owner.shape[0], np.int32)
    cdef int64_t[::1] ends = found[0]
    cdef int32_t[::1] topics = found[1], numbers = found[2]
    cdef Py_ssize_t member, at, topic
    cdef int64_t place, start = 0
    for at in range(owner.shape[0]):
        if owner[at] >= 0:
            ends[owner[at]] += 1
    for member in range(members):
        place = ends[member]
        ends[member] = start
        start += place
    for topic in range(first.shape[0] - 1):
        for at in range(first[topic], first[topic + 1]):
            if owner[at] >= 0:
                place = ends[owner[at]]
                ends[owner[at]] += 1
                topics[place], numbers[place] = <int32_t>topic, <int32_t>(at - first[topic])
    return found


cdef list pairs_between(
    list names, list known, const int32_t[:] topics, const int32_t[:] numbers, Py_ssize_t start, Py_ssize_t end
):
    """List the pairs at these places; those of one member are made together, so they lie together in memory."""
    cdef list found = PyList_New(end - start)
    cdef Py_ssize_t at
    for at in range(start, end):
        name = names[topics[at]]
        pair = (name, known[numbers[at]])
        if type(name) is str:  # in no cycle, so the garbage collector need not look at it
            PyObject_GC_UnTrack(pair)
        Py_INCREF(pair)
        PyList_SET_ITEM(found, at - start, pair)
    return found
