"""The records that wait are counted and shown as if all were in memory, whatever parts they come in."""

from collections import Counter
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.sink.quarantine.quarantine_listing import counts, lowest

SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("error_class", pa.string())]
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 30), st.sampled_from(["Bad", "Worse", None])
    ),
    max_size=30,
    unique_by=lambda row: row[:3],
)


def _table(rows: list[tuple[str, int, int, str | None]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def _parts(rows: list[tuple[str, int, int, str | None]], size: int) -> list[pa.Table]:
    return [_table(rows[at : at + size]) for at in range(0, len(rows), size)]


@given(rows=ROWS, size=st.integers(1, 10))
def test_counts_are_those_of_all_records_in_order(rows: list[tuple[str, int, int, str | None]], size: int) -> None:
    """Also the order: topic and error stand where their first record is."""
    assert list(counts(_parts(rows, size)).items()) == list(
        Counter((row[0], row[3]) for row in sorted(rows, key=_place)).items()
    )


@given(
    rows=ROWS,
    size=st.integers(1, 10),
    limit=st.integers(1, 8),
    wanted=st.fixed_dictionaries(
        {}, optional={"topic": st.just("a"), "partition": st.integers(0, 3), "offset": st.integers(0, 2**63 - 1)}
    ),
)
def test_the_lowest_records_are_those_of_all_records_in_order(
    rows: list[tuple[str, int, int, str | None]], size: int, limit: int, wanted: dict[str, object]
) -> None:
    """Only as many as asked for are kept on the way."""
    every = sorted(_table(rows).to_pylist(), key=lambda row: (row["topic"], row["partition"], row["offset"]))
    expected = [row for row in every if all(row[name] == value for name, value in wanted.items())][:limit]
    found = lowest(_parts(rows, size), wanted, limit)
    assert (found.to_pylist() if found is not None else []) == expected


@given(
    sizes=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9) | st.none()), max_size=20),
    size=st.integers(1, 6),
    limit=st.integers(1, 8),
    limit_bytes=st.integers(0, 30),
    order=st.randoms(use_true_random=False),
)
def test_records_are_bounded_by_bytes_and_none_is_left_out_before_the_last(
    sizes: list[tuple[int, int | None]], size: int, limit: int, limit_bytes: int, order: Random
) -> None:
    """A publisher goes on after the last record that it got: one that was left out before it would be lost."""
    rows: list[dict[str, object]] = [
        {"topic": "a", "partition": n, "offset": at, "key": b"k", "value": None if long is None else b"v" * long}
        for at, (n, long) in enumerate(sizes)
    ]
    every = sorted(rows, key=lambda row: (row["partition"], row["offset"]))
    order.shuffle(rows)
    schema = pa.schema([*list(SCHEMA)[:3], ("key", pa.binary()), ("value", pa.binary())])
    parts = [pa.Table.from_pylist(rows[at : at + size], schema=schema) for at in range(0, len(rows), size)]
    found = lowest(parts, {}, limit, limit_bytes)
    kept = [] if found is None else found.to_pylist()
    assert kept == every[: len(kept)]
    assert len(kept) <= limit
    assert len(kept) >= min(len(rows), 1)
    assert len(kept) <= 1 or sum(len(row["key"]) + len(row["value"] or b"") for row in kept) <= limit_bytes


def _place(row: tuple[str, int, int, str | None]) -> tuple[str, int, int]:
    return row[:3]
