"""Resolves the broker's jars once into a cache."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from spark_sink.agent.start.java_command import CACHE_VARIABLE, cache_directory, find_java
from spark_sink.errors import ClusterError

KAFKA_VERSION = "4.3.0"

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


_MEGABYTES = 45  # of the jars, about
_LOOK_S = 2.0


def resolve_jars(java: str, report: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of the broker's jars; only the first call downloads them.

    Args:
        java: the command that runs Ivy.
        report: called with a line about the progress of a download, at most every two seconds.

    Raises:
        ClusterError: pyspark is missing, the jars cannot be downloaded, or the cache cannot be written.
    """
    folder = cache_directory() / f"kafka-{KAFKA_VERSION}"
    try:
        if not folder.is_dir():
            _resolve_into(folder, java, report)
    except OSError as error:
        raise ClusterError(
            f"the jars of Kafka {KAFKA_VERSION} cannot be kept in {folder.parent} ({error.strerror}): "
            f"name another folder with {CACHE_VARIABLE}"
        ) from error
    return folder


def _resolve_into(folder: Path, java: str, report: Callable[[str], None]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Resolved into a temporary folder and renamed at the end, so that an interrupted download leaves no partial folder.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="resolving-") as work:
        _run_ivy(java, Path(work), report)
        try:
            (Path(work) / "jars").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise


def _run_ivy(java: str, work: Path, report: Callable[[str], None]) -> None:
    (work / "ivy.xml").write_text(_IVY_FILE)
    command = [
        *(java, "-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache"), "-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    with (
        (work / "ivy.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as ivy,  # noqa: S603 - our own command
    ):
        line = ""
        try:
            while ivy.poll() is None:
                before, line = line, f"fetching Kafka {KAFKA_VERSION}: {_megabytes(work)} of about {_MEGABYTES} MB"
                if line != before:
                    report(line)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    ivy.wait(_LOOK_S)
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode or not list((work / "jars").glob("kafka_2.13-*.jar")):
        text = (work / "ivy.log").read_text(errors="replace")
        said = (line.strip() for line in text.partition(":::: ERRORS")[2].splitlines())
        reason = next((line for line in said if line), "")
        raise ClusterError(
            f"the jars of Kafka {KAFKA_VERSION} could not be downloaded from Maven Central: the first run needs a "
            f"network, later ones do not{f' ({reason[:160]})' if reason else ''}"
        )


def _megabytes(work: Path) -> int:
    sizes = []
    for file in (work / "cache").rglob("*"):
        with contextlib.suppress(OSError):  # Ivy renames a file once it is complete
            sizes.append(file.stat().st_size)
    return sum(sizes) // 1_000_000


def _ivy_jar() -> Path:
    try:
        import pyspark  # noqa: PLC0415 - optional: the message says how to get it
    except ImportError as error:
        raise ClusterError("the cluster takes Ivy from pyspark: pip install 'kafka-azimuth[spark]'") from error
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise ClusterError(f"no ivy-*.jar in {Path(pyspark.__file__).parent / 'jars'}: reinstall pyspark")
    return jars[-1]


def fetch() -> int:
    """Download the jars before the first cluster needs them; a failure is reported, and the cluster tries again.

    Returns:
        0, or 1 where it failed.
    """
    try:
        resolve_jars(find_java(), lambda line: print(line, file=sys.stderr))  # noqa: T201 - a program's progress
    except ClusterError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a program's output
        return 1
    return 0
