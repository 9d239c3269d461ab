"""Settings of the demo are checked when they are made."""

import pytest

from spark_sink.demo.settings import DemoSettings
from spark_sink.errors import DemoError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kill_at", 1.0),
        ("bulk", 0.0),
        ("default_share", float("nan")),
        ("live_rate", 0.0),
        ("max_offsets_per_trigger", 0),
    ],
)
def test_a_setting_that_cannot_work_is_named(name: str, value: float) -> None:
    """Better now than after two minutes."""
    with pytest.raises(DemoError, match=f"{name}="):
        DemoSettings(**{name: value})  # type: ignore[arg-type] # one of several types
