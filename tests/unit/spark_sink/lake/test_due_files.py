"""Which files a compaction rewrites: each row seldom, and yet few files stay."""

import math

from hypothesis import given
from hypothesis import strategies as st

from spark_sink.lake.file_rewrite import TableFile, due_files


def _file(number: int, rows: int) -> TableFile:
    return TableFile(f"part-{number}.parquet", rows, (), rows)


@given(st.lists(st.lists(st.integers(1, 1_000), min_size=20, max_size=120), min_size=1, max_size=40))
def test_rows_are_rewritten_and_files_stay_as_often_as_a_logarithm(batches: list[list[int]]) -> None:
    """Joined each time, the rows of the first commit would be rewritten in each compaction."""
    files: list[TableFile] = []
    written, number = 0, 0
    for batch in batches:
        for rows in batch:
            number += 1
            files.append(_file(number, rows))
        joined = due_files(files)
        assert set(joined) <= set(files)
        number += 1
        written += (rows := sum(one.rows for one in joined))
        files = [*(one for one in files if one not in joined), _file(number, rows)]
    total = sum(map(sum, batches))
    assert sum(one.rows for one in files) == total
    assert len(files) <= 18 + math.log2(total)
    assert written <= total * (2 + math.log2(len(batches)))


@given(st.lists(st.integers(0, 10_000), max_size=16))
def test_few_files_are_all_joined(rows: list[int]) -> None:
    """To rewrite them costs little, whatever their sizes."""
    files = [_file(number, one) for number, one in enumerate(rows)]
    assert due_files(files) == files


def test_a_large_file_waits_until_the_others_have_as_many_rows() -> None:
    """And files whose number of rows the log does not have are joined."""
    small = [_file(number, 10) for number in range(20)]
    unknown, large = _file(98, 0), _file(99, 201)
    assert due_files([large, *small, unknown]) == [*small, unknown]
    assert due_files([large, *small, _file(97, 1)]) == [large, *small, _file(97, 1)]
