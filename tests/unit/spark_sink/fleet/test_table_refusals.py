"""How long the tables of a source have refused."""

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
