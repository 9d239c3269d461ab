"""Settings of a job: invalid ones are refused before a connection to a broker or a database."""

import math
from typing import Any

import pytest

from spark_sink import SparkSinkError
from spark_sink.claimed import ClaimedSettings

GOOD: dict[str, Any] = {"name": "n", "table": "t", "database": "sqlite:///claims.db", "kafka": {}}
WHOLE = [0, -1, 1 << 64, 1.5, math.nan, math.inf, True, "many"]
SECONDS = [0, -1, math.nan, math.inf, 1e9, "soon"]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in ("partitions", "records", "memory_bytes") for value in WHOLE]
    + [(name, value) for name in ("discover_s", "idle_s", "poll_timeout_s") for value in SECONDS]
    + [(name, "") for name in ("name", "table", "database")],
)
def test_a_setting_without_a_meaning_is_named(name: str, value: object) -> None:
    """A wait of `inf` would end the job in the middle of its work, with a trace."""
    ClaimedSettings(**GOOD)
    with pytest.raises(SparkSinkError, match=name):
        ClaimedSettings(**{**GOOD, name: value})


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_a_longest_runtime_is_for_jobs_that_end(seconds: float) -> None:
    """One without --once would look like a failure to its supervisor."""
    ClaimedSettings(**GOOD, once=True, max_runtime_s=3600.0)
    with pytest.raises(SparkSinkError, match="max_runtime="):
        ClaimedSettings(**GOOD, once=True, max_runtime_s=seconds)
    with pytest.raises(SparkSinkError, match="--max-runtime has no effect without --once"):
        ClaimedSettings(**GOOD, max_runtime_s=3600.0)


def test_a_table_with_the_address_of_a_quarantine_is_refused() -> None:
    """The bad records of the table `t` go there."""
    with pytest.raises(SparkSinkError, match="bad records of the table t;"):
        ClaimedSettings(**{**GOOD, "table": "t_quarantine"})
