"""The assignors that run inside a broker: finds their jar, and configures a broker to load them."""

import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from spark_sink.errors import ClusterError

JAR_VARIABLE: Final = "AZIMUTH_BROKER_JAR"
# Kafka's own assignors stay first: the first one plans the groups whose members name no assignor.
PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group.consumer.assignors": "uniform,range,azimuth.broker.HrwAssignor,azimuth.broker.ShuffledAssignor",
    }
)
_BUILT: Final = Path(__file__).parents[3] / "build" / "broker" / "azimuth-broker.jar"
_INSTALLED: Final = Path(__file__).with_name(_BUILT.name)


def find_assignor_jar() -> Path:
    """Return the jar that `AZIMUTH_BROKER_JAR` names, else that of the installed wheel, else that of `make broker`.

    Raises:
        ClusterError: there is no such jar, or it has no assignors.
    """
    named = os.environ.get(JAR_VARIABLE)
    jar = Path(named) if named else _INSTALLED if _INSTALLED.is_file() else _BUILT
    if not jar.is_file():
        raise ClusterError(
            f"no jar of the broker's assignors at {jar}: build it with `make broker`, or name one with {JAR_VARIABLE}"
        )
    if not _has_assignors(jar):
        raise ClusterError(
            f"{jar} has no class azimuth.broker.HrwAssignor: "
            f"build the jar with `make broker`, or name one with {JAR_VARIABLE}"
        )
    return jar


def _has_assignors(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as classes:
            return "azimuth/broker/HrwAssignor.class" in classes.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def install_assignor_jar(jar: Path, directory: Path) -> None:
    """Copy the jar into a cluster's directory, so that brokers started later find it, too.

    Raises:
        ClusterError: the directory's name contains a class path separator, or the jar cannot be copied.
    """
    if os.pathsep in str(directory):
        raise ClusterError(
            f"{directory} has {os.pathsep!r}, where Java would begin another folder: choose another --dir"
        )
    try:
        plugins(directory).mkdir()
        # Under a name of ours: Java's `plugins/*` takes only files whose name ends with .jar.
        shutil.copy(jar, plugins(directory) / _BUILT.name)
    except OSError as error:
        raise ClusterError(f"{jar} cannot be copied into {directory} ({error.strerror})") from error


def plugins(directory: Path) -> Path:
    """Return the folder of a cluster's own jars."""
    return directory / "plugins"


def class_path(jars: Path, directory: Path) -> str:
    """Return the class path: Kafka's jars, and the cluster's own if it has any."""
    own = plugins(directory)
    return os.pathsep.join([f"{jars}/*", *([f"{own}/*"] if own.is_dir() else [])])
