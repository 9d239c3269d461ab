"""Which files are joined: enough of one size, so that a row is rewritten a few times only."""

from hypothesis import given
from hypothesis import strategies as st

from spark_sink.lake.iceberg.small_files import BOUNDS, ENOUGH, MOST_BYTES, files_to_join

SIZES = st.lists(st.one_of(st.integers(1, 1 << 20), st.integers(1, 80 << 20)), max_size=40)


@given(SIZES)
def test_what_is_joined_has_enough_files_of_one_class_or_reaches_the_limit(sizes: list[int]) -> None:
    """Each file once, none that is large, and the smallest first."""
    found = files_to_join(sizes)
    assert len(set(found)) == len(found)
    assert all(sizes[at] < BOUNDS[0] for at in found)
    assert [sizes[at] for at in found] == sorted(sizes[at] for at in found)
    total = sum(sizes[at] for at in found)
    assert total <= MOST_BYTES
    assert not found or len(found) >= ENOUGH or total + max(sizes) > MOST_BYTES


@given(SIZES)
def test_joining_ends(sizes: list[int]) -> None:
    """Joined again and again without new files, a table comes to rest after a few rounds."""
    for _ in range(len(BOUNDS) + 8):
        chosen = files_to_join(sizes)
        if not chosen:
            return
        joined = sum(sizes[at] for at in chosen)
        sizes = [size for at, size in enumerate(sizes) if at not in set(chosen)] + [joined]
    raise AssertionError(sizes)


def test_a_row_is_rewritten_a_few_times_as_the_table_grows() -> None:
    """1,000 rounds of 50 commits with 100 kB each: 5 GB, each byte rewritten at most five times."""
    sizes: list[int] = []
    rewritten = total = 0
    for _ in range(1_000):
        sizes += [100_000] * 50
        total += 5_000_000
        chosen = files_to_join(sizes)
        joined = sum(sizes[at] for at in chosen)
        rewritten += joined
        sizes = [size for at, size in enumerate(sizes) if at not in set(chosen)] + [joined]
    assert rewritten <= 5 * total
    assert len(sizes) <= total / (64 << 20) + 3 * ENOUGH
