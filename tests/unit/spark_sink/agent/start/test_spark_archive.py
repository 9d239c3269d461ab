"""The archive of Spark's classes."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from pyspark import SparkContext

from spark_sink.agent.start.java_command import CACHE_VARIABLE
from spark_sink.agent.start.spark_archive import make_spark_archive


def test_a_jvm_ends_if_making_the_archive_is_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C before the driver has connected left a JVM that never ended."""
    started: list[psutil.Process] = []

    def interrupted(**_: object) -> None:
        jvm = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        started.append(psutil.Process(jvm.pid))
        jvm.returncode = 0  # psutil reaps it; without this, Popen warns on its deletion
        raise KeyboardInterrupt

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(SparkContext, "_ensure_initialized", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            make_spark_archive()
        (jvm,) = started
        assert jvm.wait(10) is not None
    finally:
        for process in started:
            if process.is_running():
                process.kill()


def test_a_full_disk_is_found_before_a_jvm_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The JVM ran for its minute, and the reason was that there is no such file."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    with pytest.raises(OSError, match="No space left"):
        make_spark_archive()
