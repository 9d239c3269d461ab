"""Iceberg and Delta tables as Spark reads them, with the formats' own runtimes, from Maven Central.

The runtime of Iceberg 1.11 is made for Spark 4.1 and does not load in the Spark 4.2 of the requirements, so this is a
Spark of its own, without Python.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.spark_sink.maven_jars import Jar, fetch_jars
from tests.integration.spark_sink.tied import tied

_JARS = (
    Jar("org.apache.spark", "spark-sql_2.13", "4.1.1"),
    Jar("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0"),
    Jar("io.delta", "delta-spark_4.1_2.13", "4.1.0"),
    Jar("org.xerial", "sqlite-jdbc", "3.50.3.0"),
)
_PROGRAM = Path(__file__).with_name("ReadTable.java")
# What Spark's own launcher opens on Java 17.
_OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")
_OPTIONS = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in _OPENED]
_OPTIONS += [f"--add-opens=java.base/sun.{one}=ALL-UNNAMED" for one in ("nio.ch", "nio.cs", "util.calendar")]


class SparkReader:
    """Reads tables of a local catalog, and Delta tables of any folder, by Spark.

    Args:
        root: folder for the jars.
    """

    def __init__(self, root: Path) -> None:
        self._java = shutil.which("java")
        if self._java is None or shutil.which("javac") is None:
            pytest.skip("a JDK is missing")
        self._jars = fetch_jars(root / "jars", _JARS, "the formats' runtimes for Spark")

    def query(self, warehouse: Path, *queries: str) -> list[dict[str, Any]]:
        """Run queries; return their rows, one after another.

        Args:
            warehouse: folder of the Iceberg tables, which are in the catalog `lake`.
            queries: on these tables, or on Delta tables by their path.
        """
        assert self._java is not None  # skipped otherwise
        catalog = ["lake", f"jdbc:sqlite:{warehouse}/catalog.db", str(warehouse)]
        command = [self._java, *_OPTIONS, "-cp", f"{self._jars}/*", str(_PROGRAM), *catalog, *queries]
        done = subprocess.run(tied(command), capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
