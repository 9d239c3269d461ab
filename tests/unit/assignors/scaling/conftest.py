"""Windows of topics whose history is easy to state, and the settings of one pipeline."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from assignors.scaling import Window
from assignors.scaling.evaluator_settings import ScalingSettings
from tests.unit.assignors.scaling.evaluator_parts import write

MakeWindow = Callable[..., Window]


def window(
    arriving: Sequence[float],
    leaving: Sequence[float],
    lag: Sequence[float],
    steps: int = 120,
    every_s: float = 30.0,
) -> Window:
    """Make a window: records come and are read at constant rates, by partition.

    Args:
        arriving: records a second, one number a partition.
        leaving: as arriving.
        lag: records at the end.
        steps: observations.
        every_s: seconds between two of them.
    """
    times = np.array([1e6 + n * every_s for n in range(steps)])
    back = (times - times[-1])[:, None]
    end = 1e9 + back * np.array(arriving)
    committed = 1e9 - np.array(lag) + back * np.array(leaving)
    return Window(
        times_s=times,
        start=np.zeros(end.shape, dtype=np.int64),
        end=end.astype(np.int64),
        committed=np.minimum(committed, end).astype(np.int64),
    )


@pytest.fixture
def steady() -> MakeWindow:
    """Make a window of constant rates, as `window` does."""
    return window


@pytest.fixture
def settings(tmp_path: Path) -> ScalingSettings:
    """One pipeline of one topic."""
    file = write(tmp_path / "s.toml", group="ingest", topics=["flights"], worker_rate=1000.0, max_poll_records=500)
    return ScalingSettings.load(file)
