"""Records of the workers topic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.scaling.workers_records import (
    ScaledTopic,
    WorkersRecord,
    decode,
    decode_key,
    encode,
    encode_key,
)

NAMES = st.text("abc.-_", min_size=1)
COUNTS = st.none() | st.integers(1, 10**9)
RATES = st.none() | st.floats(0, 2**31 - 1)


@given(NAMES, st.text(), NAMES)
def test_a_key_is_read_as_it_was_written(cluster: str, group: str, topic: str) -> None:
    """Groups may have slashes; clusters and topics cannot."""
    name = ScaledTopic(cluster, group.encode("utf-8", "ignore").decode(), topic)
    assert decode_key(encode_key(name)) == name


@given(st.integers(1, 10**6), st.integers(0, 2**53), st.text("abc é"), NAMES, COUNTS, COUNTS, RATES)
def test_a_value_is_read_as_it_was_written(  # noqa: PLR0913, PLR0917 -- the fields of a record
    workers: int, at_ms: int, reason: str, policy: str, records: int | None, timeout: int | None, rate: float | None
) -> None:
    """All fields, the optional ones also absent."""
    record = WorkersRecord(
        workers=workers,
        at_ms=at_ms,
        reason=reason,
        policy=policy,
        max_poll_records=records,
        poll_timeout_ms=timeout,
        records_per_s=rate,
    )
    assert decode(encode(record)) == record


@pytest.mark.parametrize("rate", ["-1", "NaN", "Infinity", "1e999", "true", '"4"'])
def test_a_rate_that_is_no_rate_is_left_out(rate: str) -> None:
    """A weight that is not finite would fail the placement of all topics; the number of workers still counts."""
    record = decode(f'{{"v": 1, "workers": 2, "at_ms": 1, "records_per_s": {rate}}}'.encode())
    assert record is not None
    assert (record.workers, record.records_per_s) == (2, None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{",
        b"\xff",
        b"3",
        b"[]",
        b'{"v": 2, "workers": 3, "at_ms": 1}',
        b'{"v": 1, "workers": 0, "at_ms": 1}',
        b'{"v": 1, "workers": true, "at_ms": 1}',
        b'{"v": 1, "workers": 2.5, "at_ms": 1}',
        b'{"v": 1, "workers": 3}',
        b'{"v": 1, "workers": 2147483648, "at_ms": 1}',
        b'{"v": 1, "workers": 1%s, "at_ms": 1}' % (b"0" * 400),
        b"[" * 100_000,
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_ours_is_no_number(value: bytes | None) -> None:
    """A reader of a shared topic must not fail, and must not believe nonsense."""
    assert decode(value) is None


@pytest.mark.parametrize("key", [None, b"", b"topic", b"cluster/topic", b"\xff/g/t", b"/g/t", b"c/g/"])
def test_a_key_of_others_is_passed_over(key: bytes | None) -> None:
    """The topic may hold records of other kinds."""
    assert decode_key(key) is None
