"""The archive of Spark's classes."""

import subprocess
import sys
from pathlib import Path

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
