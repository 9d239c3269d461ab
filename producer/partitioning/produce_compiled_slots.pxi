"""Which of some partitions has a slot by rendezvous hashing, found from one key to the next."""


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
    """The sequence of `rendezvous_slots.hrw_table`, computed at each look-up.

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
        """Score all members for a slot that drew none, as `rendezvous_slots._score_the_rest`."""
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
