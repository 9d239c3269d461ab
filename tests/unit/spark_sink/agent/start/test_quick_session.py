"""The quick session of an agent, beside the one that Spark's builder makes."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

_LOOKS = """
import json, sys
from pyspark.sql import SparkSession
from spark_sink.agent.start import quick_session as module

def look(spark):
    spark.range(5).createOrReplaceTempView("five")
    functions = [row.function for row in spark.sql("SHOW FUNCTIONS").collect()]
    rows = [row.n for row in spark.sql("SELECT id + 1 AS n FROM five WHERE id > 2 ORDER BY n").collect()]
    active = SparkSession.getActiveSession() is not None
    zone = spark.conf.get("spark.sql.session.timeZone")
    same = SparkSession.builder.getOrCreate() is spark
    return {"functions": functions, "rows": rows, "active": active, "zone": zone, "same": same}

conf = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.log.level": "OFF",
    **json.loads(sys.argv[1]),
}
loaded = []
short = module._without_extensions
module._without_extensions = lambda *parts: loaded.append(True) or short(*parts)
quick = module.quick_session(conf)
found = look(quick)
quick.stop()
built = SparkSession.builder.config(map=conf).getOrCreate()
print(json.dumps({"quick": found, "built": look(built), "short": bool(loaded)}))
built.stop()
"""


def _look(**settings: str) -> dict[str, Any]:
    command = [sys.executable, "-c", _LOOKS, json.dumps(settings)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def test_a_quick_session_has_the_functions_settings_and_place_of_spark_s_own() -> None:
    """Only the internal functions of `pyspark.ml` are missing, and those no SQL can name."""
    found = _look()
    assert found["short"]
    assert found["quick"] == found["built"]
    assert found["quick"]["rows"] == [4, 5]
    assert found["quick"]["zone"] == "Asia/Kolkata"
    assert found["quick"]["active"]
    assert found["quick"]["same"]


def test_a_chosen_extension_is_loaded() -> None:
    """Spark logs an extension that is missing, and goes on; it was looked for."""
    assert not _look(**{"spark.sql.extensions": "io.example.Missing"})["short"]


def test_a_jar_that_declares_an_extension_is_heard(tmp_path: Path) -> None:
    """Some jars need no setting: their extension is there as soon as the jar is on the class path."""
    jar = tmp_path / "further.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider", "")
    assert not _look(**{"spark.jars": str(jar)})["short"]
