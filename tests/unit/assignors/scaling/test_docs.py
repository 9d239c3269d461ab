"""The examples of docs/scaling.md run unchanged."""

import contextlib
import io
import re
from pathlib import Path

from assignors.scaling.evaluator_settings import ScalingSettings

TEXT = (Path(__file__).parents[4] / "docs" / "scaling.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The only block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_decision_of_the_example() -> None:
    """3,200 records a second come, half of it is read: the example says how many workers that needs."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block("python"), {})  # noqa: S102 -- our own text
    workers, reason = printed.getvalue().split(" ", 1)
    assert 4 <= int(workers) <= 12
    assert reason.startswith(f"the policy chooses {workers} workers: ")
    assert "3200 a second come" in reason


def test_the_settings_of_the_example(tmp_path: Path) -> None:
    """The file is valid, and its names are known."""
    path = tmp_path / "scaling.toml"
    path.write_text(block("toml"))
    settings = ScalingSettings.load(path)
    assert settings.pipelines["flights"].max_workers == 12
