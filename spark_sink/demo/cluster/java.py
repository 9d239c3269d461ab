"""Finds Java on this machine, and resolves the broker's jars once into a cache."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from spark_sink.errors import ClusterError

KAFKA_VERSION = "4.3.0"
OLDEST_JAVA = 17
CACHE_VARIABLE = "AZIMUTH_CACHE"

# One file for both dependencies: Kafka logs through slf4j, and its pom leaves out the log4j binding.
_IVY_FILE = f"""<ivy-module version="2.0">
  <info organisation="azimuth" module="brokers"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4" conf="default->default"/>
  </dependencies>
</ivy-module>
"""


def cache_directory() -> Path:
    """Return the folder for downloads: `$AZIMUTH_CACHE`, else `kafka-azimuth` in the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-azimuth"


def find_java() -> str:
    """Return the java command, from JAVA_HOME or the path.

    Raises:
        ClusterError: there is no Java, it does not run, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java on the PATH"
        raise ClusterError(
            f"{where}: install Java {OLDEST_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
        )
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - a found java
    except OSError as error:
        raise ClusterError(f"{java} cannot be run ({error.strerror}): install Java {OLDEST_JAVA} or newer") from error
    major = parse_major(asked.stderr + asked.stdout)
    if major is None:
        raise ClusterError(f"{java} -version says {asked.stderr.strip()[:200]!r}: install Java {OLDEST_JAVA} or newer")
    if major < OLDEST_JAVA:
        raise ClusterError(f"{java} is Java {major}: Kafka {KAFKA_VERSION} and Spark need {OLDEST_JAVA} or newer")
    return java


def parse_major(version_text: str) -> int | None:
    """Return the major version from the output of `java -version`; 8 for the old form 1.8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', version_text)
    if found is None:
        return None
    first, second = found.group(1), found.group(2)
    return int(second) if first == "1" and second else int(first)


def resolve_jars(java: str) -> Path:
    """Return the folder of the broker's jars; only the first call downloads them.

    Raises:
        ClusterError: pyspark is missing, the jars cannot be downloaded, or the cache cannot be written.
    """
    folder = cache_directory() / f"kafka-{KAFKA_VERSION}"
    try:
        if not folder.is_dir():
            _resolve_into(folder, java)
    except OSError as error:
        raise ClusterError(
            f"the jars of Kafka {KAFKA_VERSION} cannot be kept in {folder.parent} ({error.strerror}): "
            f"name another folder with {CACHE_VARIABLE}"
        ) from error
    return folder


def _resolve_into(folder: Path, java: str) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Resolved into a temporary folder and renamed at the end, so that an interrupted download leaves no partial folder.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="resolving-") as work:
        _run_ivy(java, Path(work))
        try:
            (Path(work) / "jars").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise


def _run_ivy(java: str, work: Path) -> None:
    (work / "ivy.xml").write_text(_IVY_FILE)
    command = [
        *(java, "-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache"), "-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode or not list((work / "jars").glob("kafka_2.13-*.jar")):
        said = (line.strip() for line in done.stdout.partition(":::: ERRORS")[2].splitlines())
        reason = next((line for line in said if line), "")
        raise ClusterError(
            f"the jars of Kafka {KAFKA_VERSION} could not be downloaded from Maven Central: the first run needs a "
            f"network, later ones do not{f' ({reason[:160]})' if reason else ''}"
        )


def _ivy_jar() -> Path:
    try:
        import pyspark  # noqa: PLC0415 - optional: the message says how to get it
    except ImportError as error:
        raise ClusterError("the cluster takes Ivy from pyspark: pip install 'kafka-azimuth[spark]'") from error
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise ClusterError(f"no ivy-*.jar in {Path(pyspark.__file__).parent / 'jars'}: reinstall pyspark")
    return jars[-1]
