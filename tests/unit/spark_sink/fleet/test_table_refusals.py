"""How long the tables of a source have refused, and what is logged of it."""

import errno
import os

import pytest

from spark_sink.errors import TableError
from spark_sink.fleet.table_refusals import RefusedTables


def test_a_refusal_grows_older_with_each_attempt_until_the_table_takes_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert on lag needs an age that no attempt sets back; a refusal long after the last one is another fault."""
    now = [1000.0]
    monkeypatch.setattr("spark_sink.fleet.table_refusals.time.monotonic", lambda: now[0])
    refused = RefusedTables("s")
    for _ in range(400):
        refused.note({"t@1"}, TableError("no table"))
        now[0] += 1.0
    assert refused.late_s() == {"t": 400.0}
    refused.taken({"t@1"})
    assert refused.late_s() == {}
    refused.note({"t@1"}, TableError("no table"))
    now[0] += 200.0
    assert refused.late_s() == {}
    refused.note({"t@1"}, TableError("no table"))
    assert refused.late_s() == {"t": 0.0}


@pytest.mark.parametrize(
    ("why", "logged"),
    [(os.strerror(errno.ENOSPC), [1, 1]), (os.strerror(errno.EDQUOT), [1, 1]), ("no table", [3, 3])],
    ids=["full disk", "quota", "another cause"],
)
def test_one_full_disk_is_one_line(
    why: str, logged: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of hundreds of topics had its own line, every time; the problems of the status name each still."""
    now = [1000.0]
    monkeypatch.setattr("spark_sink.fleet.table_refusals.time.monotonic", lambda: now[0])
    refused = RefusedTables("s")
    for lines in logged:
        caplog.clear()
        for _ in range(30):
            for topic in ("a", "b", "c"):
                refused.note({topic}, TableError(f"/lake/{topic}: {why}"))
            now[0] += 1.0
        assert len(caplog.records) == lines
        assert refused.problems() == [f"s/{topic}: /lake/{topic}: {why}" for topic in ("a", "b", "c")]
        now[0] += 60.0  # space was free for a while
