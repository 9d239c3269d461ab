"""Values at any address become an Arrow array with the same bytes."""

import ctypes
import mmap

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.fetch.memory_gather import binary, structs


def place(values: list[bytes | None]) -> tuple[list[ctypes.Array[ctypes.c_char]], list[int], list[int]]:
    """Put each value at a separate address; None is at address 0."""
    held = [ctypes.create_string_buffer(value, len(value)) for value in values if value is not None]
    rest = iter(held)
    addresses = [0 if value is None else ctypes.addressof(next(rest)) for value in values]
    return held, addresses, [len(value or b"") for value in values]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=40), st.binary(min_size=10, max_size=14))))
def test_values_come_back_as_they_were(values: list[bytes | None]) -> None:
    """Nulls, empty values, and lengths around the twelve bytes that fit into a view itself."""
    held, addresses, lengths = place(values)
    found = binary(np.array(addresses, np.uint64), np.array(lengths, np.int64))
    found.validate(full=True)
    assert found.to_pylist() == values
    del held


def test_the_copy_outlives_the_memory() -> None:
    """Librdkafka frees its records right after."""
    held, addresses, lengths = place([b"x" * 100, b"short"])
    found = binary(np.array(addresses, np.uint64), np.array(lengths))
    for one in held:
        ctypes.memset(one, 0, len(one))
    assert found.to_pylist() == [b"x" * 100, b"short"]


def test_nothing_behind_a_value_is_read() -> None:
    """The value ends where the process's memory does: one byte more would end the process."""
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None)
    edge = base + mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(edge), mmap.PAGESIZE, 0) == 0
    try:
        for length in (1, 5, 12, 13, 72, 200):
            ctypes.memset(edge - length, 65, length)
            assert binary(np.array([edge - length], np.uint64), np.array([length])).to_pylist() == [b"A" * length]
    finally:
        libc.mprotect(ctypes.c_void_p(edge), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)


def test_structs_are_read_by_their_layout() -> None:
    """As C lays them out, padding included."""
    layout = np.dtype({"names": ["a", "b"], "formats": ["i4", "i8"], "offsets": [0, 8], "itemsize": 16})
    held = [np.array([(n, -n)], layout) for n in range(50)]
    found = structs(np.array([one.ctypes.data for one in held], np.uint64), layout)
    assert found["a"].tolist() == list(range(50))
    assert found["b"].tolist() == [-n for n in range(50)]
    assert len(structs(np.empty(0, np.uint64), layout)) == 0
