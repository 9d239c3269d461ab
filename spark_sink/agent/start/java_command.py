"""Finds Java on this machine, and the folder in which downloads and class archives are kept."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from spark_sink.errors import ClusterError

OLDEST_JAVA = 17
CACHE_VARIABLE = "AZIMUTH_CACHE"


def cache_directory() -> Path:
    """Return the folder for downloads: `$AZIMUTH_CACHE`, else `kafka-azimuth` in the user's cache folder.

    Raises:
        ClusterError: neither is known.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-azimuth"
    except RuntimeError as error:
        raise ClusterError(f"this user has no home folder: name one for downloads with {CACHE_VARIABLE}") from error


def locate_java() -> str:
    """Return the java command, from JAVA_HOME or the path, without a look at its version.

    Raises:
        ClusterError: there is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java on the PATH"
        raise ClusterError(
            f"{where}: install Java {OLDEST_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
        )
    return java


def find_java() -> str:
    """Return the java command, from JAVA_HOME or the path.

    Raises:
        ClusterError: there is no Java, it does not run, or it is older than 17.
    """
    java = locate_java()
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - a found java
    except OSError as error:
        raise ClusterError(f"{java} cannot be run ({error.strerror}): install Java {OLDEST_JAVA} or newer") from error
    major = parse_major(asked.stderr + asked.stdout)
    if major is None:
        raise ClusterError(f"{java} -version says {asked.stderr.strip()[:200]!r}: install Java {OLDEST_JAVA} or newer")
    if major < OLDEST_JAVA:
        raise ClusterError(f"{java} is Java {major}: Kafka and Spark need {OLDEST_JAVA} or newer")
    return java


def parse_major(version_text: str) -> int | None:
    """Return the major version from the output of `java -version`; 8 for the old form 1.8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', version_text)
    if found is None:
        return None
    first, second = found.group(1), found.group(2)
    return int(second) if first == "1" and second else int(first)
