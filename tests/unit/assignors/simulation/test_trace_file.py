"""The user's traces from files: all counted records are kept, at the rate of their counts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import AssignorError
from assignors.scaling.observation import F64
from assignors.simulation.trace_file import _spread, traces_from_csv

HEAD = "time_s,topic,partition,records\n"


@pytest.mark.parametrize("every_s", [10, 30, 45, 3600])
def test_counts_become_a_flat_rate_over_the_time_they_cover(every_s: int, tmp_path: Path) -> None:
    """Rows of an hour are no bursts of half a minute: a thousand records a second are that in every step."""
    path = tmp_path / "mine.csv"
    rows = [f"{1e6 + n * every_s},a,{p},{1000 * every_s * (p + 1)}" for n in range(36) for p in range(2)]
    path.write_text(HEAD + "\n".join(rows))
    (only,) = traces_from_csv(path, worker_rate=10.0, step_s=30.0)
    assert len(only.arrivals) == 36 * every_s / 30
    assert (only.arrivals == [30_000, 60_000]).all()


def test_a_rate_changes_with_the_row(tmp_path: Path) -> None:
    """Each partition has its own rows; the last row covers the median duration."""
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + "0,a,0,6\n120,a,0,40\n30,a,1,9\n120,a,1,0\n240,a,1,8")
    (only,) = traces_from_csv(path, worker_rate=10.0, step_s=30.0)
    # Rows cover 120, 90 and 120 s.
    assert only.arrivals[:, 1].tolist() == [0, 3, 3, 3, 0, 0, 0, 0, 2, 2, 2, 2]
    assert only.arrivals[:, 0].tolist() == [2, 1, 1, 2, 10, 10, 10, 10, 0, 0, 0, 0]


@given(
    st.dictionaries(st.floats(0, 1e5), st.integers(0, 1 << 40), min_size=1, max_size=30),
    st.floats(1e-3, 1e4),
    st.floats(0.5, 5e3),
)
def test_every_record_is_spread_once(counts: dict[float, int], last_s: float, step_s: float) -> None:
    """Whatever the times: none is lost to rounding, and none comes from nowhere."""
    counts = dict(sorted(counts.items()))
    bounds: F64 = min(counts) + step_s * np.arange(
        int((max(counts) + last_s - min(counts)) / step_s) + 2, dtype=np.float64
    )
    spread = _spread(counts, last_s, bounds)
    assert spread.sum() == sum(counts.values())
    assert (spread >= 0).all()


def test_a_trace_is_read_from_a_file(tmp_path: Path) -> None:
    """Rows in any order, some twice; a single row covers one step."""
    path = tmp_path / "mine.csv"
    path.write_text("time_s,topic,partition,records\n100,a,1,7\n161,a,0,3\n100,a,1,1\n130,b,0,2\n")
    a, b = traces_from_csv(path, worker_rate=10.0, step_s=30.0)
    assert a.arrivals.tolist() == [[0, 8], [0, 0], [3, 0], [0, 0]]
    assert b.arrivals.tolist() == [[0], [2], [0], [0]]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "holds no rows"),
        ("time_s,topic,partition\n1,a,0\n", "'records'"),
        ("time_s,topic,partition,records\n1,a,0,many\n", "line 2"),
        ("time_s,topic,partition,records\n1,a,-1,3\n", "line 2: .*partition=-1"),
        ("time_s,topic,partition,records\n1,a,0,-3\n", "line 2: .*records=-3"),
        ("time_s,topic,partition,records\nnan,a,0,3\n", "finite time"),
        ("time_s,topic,partition,records\n0,a,0,3\nnan,a,0,3\n", "line 3: time_s=nan"),
        ("time_s,topic,partition,records\n0,a,0,3\n1e15,a,0,3\n", "times in seconds"),
        ("time_s,topic,partition,records\n-1e308,a,0,3\n1e308,a,0,3\n", "times in seconds"),
        ("time_s,topic,partition,records\n0,a,2000000000,3\n", "numbered from 0"),
        (f"time_s,topic,partition,records\n0,a,0,{10**23}\n", "records in all"),
        (f"time_s,topic,partition,records\n0,a,0,{10**18}\n30,a,1,{10**18}\n", "records in all"),
        ("time_s,topic,partition,records\n0,a,0,3\n0, ,0,3\n", "line 3: topic is empty"),
        ("time_s,topic,partition,records\n0,a\n", "line 2: no column 'partition'"),
        (f"time_s,topic,partition,records\n0,{'a' * 200_000},0,3\n", "field larger"),
    ],
)
def test_a_file_that_is_no_trace_is_named(tmp_path: Path, text: str, named: str) -> None:
    """The message has the file, the place and the error."""
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(AssignorError, match=named):
        traces_from_csv(path, worker_rate=10.0)


def test_a_file_as_spreadsheets_write_it_is_read(tmp_path: Path) -> None:
    """A mark of the byte order before the first column."""
    path = tmp_path / "sheet.csv"
    path.write_text("time_s,topic,partition,records\n0,a,0,3\n", encoding="utf-8-sig")
    (only,) = traces_from_csv(path, worker_rate=10.0)
    assert only.arrivals.tolist() == [[3]]
