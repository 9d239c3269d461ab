"""The assignors that run inside a broker: where their jar is, and what a broker needs to load them."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from spark_sink.errors import ClusterError

JAR_VARIABLE: Final = "AZIMUTH_BROKER_JAR"
# Kafka's own stay first: the first one plans the groups whose members name none.
PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group.consumer.assignors": "uniform,range,azimuth.broker.HrwAssignor,azimuth.broker.ShuffledAssignor",
    }
)
_BUILT: Final = Path(__file__).parents[3] / "build" / "broker" / "azimuth-broker.jar"


def find_assignor_jar() -> Path:
    """The jar that `AZIMUTH_BROKER_JAR` names, else the one that `make broker` built in this checkout.

    Raises:
        ClusterError: there is none.
    """
    named = os.environ.get(JAR_VARIABLE)
    jar = Path(named) if named else _BUILT
    if not jar.is_file():
        raise ClusterError(
            f"no jar of the broker's assignors at {jar}: build it with `make broker`, or name one with {JAR_VARIABLE}"
        )
    return jar


def install_assignor_jar(jar: Path, directory: Path) -> None:
    """Copy the jar into a cluster's directory, so that a broker started later finds it, too.

    Raises:
        ClusterError: the directory's name would be two entries of a class path, or the jar cannot be copied.
    """
    if os.pathsep in str(directory):
        raise ClusterError(
            f"{directory} has {os.pathsep!r}, where Java would begin another folder: choose another --dir"
        )
    try:
        plugins(directory).mkdir()
        shutil.copy(jar, plugins(directory))
    except OSError as error:
        raise ClusterError(f"{jar} cannot be copied into {directory} ({error.strerror})") from error


def plugins(directory: Path) -> Path:
    """The folder of a cluster's own jars."""
    return directory / "plugins"


def class_path(jars: Path, directory: Path) -> str:
    """Kafka's jars, and the cluster's own where it has some."""
    own = plugins(directory)
    return os.pathsep.join([f"{jars}/*", *([f"{own}/*"] if own.is_dir() else [])])
