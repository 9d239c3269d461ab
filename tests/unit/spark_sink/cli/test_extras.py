"""Commands whose extra is not installed: one sentence, and the others work."""

import subprocess
import sys
from pathlib import Path

import pytest

# Python runs a module of this name before anything else.
WITHOUT = """
import sys

for name in ("psutil", "pyspark", "pyarrow", "deltalake", "jinja2"):
    sys.modules[name] = None
"""


def azimuth(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The command line where some extras are not installed."""
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return subprocess.run(
        [sys.executable, "-m", "spark_sink", *words],
        env={"PYTHONPATH": str(folder), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("cluster", "up", "--dir", "x"),
            "azimuth: cluster: psutil is not installed: pip install 'kafka-azimuth[demo]'",
        ),
        (("verify", "x"), "azimuth: pyarrow is not installed: pip install 'kafka-azimuth[spark]'"),
    ],
)
def test_a_command_without_its_extra_says_which(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    """No traceback, exit code 2, and a sentence with the command to type."""
    done = azimuth(tmp_path, *words)
    assert (done.returncode, done.stderr.strip()) == (2, sentence)


def test_the_others_work_and_help_lists_all(tmp_path: Path) -> None:
    """`owner` needs no extra; the list shows unavailable commands with the extra that they need."""
    assert azimuth(tmp_path, "owner", "--help").returncode == 0
    listed = azimuth(tmp_path, "--help").stdout
    assert "Not installed" in listed
    assert "kafka-azimuth[demo]" in listed
