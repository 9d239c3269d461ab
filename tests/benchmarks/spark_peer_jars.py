"""Jars of the peers: Spark's own Kafka connector, and Delta's own writer for Spark, from Maven Central.

Each jar is fetched once into the cache and compared with its checksum. Where that is not possible (no network, another
file), the benchmarks measure ours alone.
"""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_sink.agent.start.java_command import cache_directory, find_java
from spark_sink.demo.cluster.kafka_jars import _ivy_jar


@dataclass(frozen=True, slots=True)
class Jar:
    """A file of Maven Central.

    Attributes:
        organisation: its group.
        name: its artifact.
        version: its version.
        sha256: checksum of the file, in hexadecimal digits.
    """

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The name in the cache."""
        return f"{self.name}-{self.version}.jar"


# With the dependencies that Spark lacks. The connector's pom requires a token provider newer than any published one.
_CONNECTOR: Final = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.1",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.1",
        "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    ),
)
# The first release of Delta that is built for Spark 4.2.
_DELTA: Final = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


def peer_jars() -> list[Path]:
    """Return the jars of Spark's own connector; empty if they cannot be fetched."""
    return _fetched(_CONNECTOR, cache_directory() / "spark-kafka-4.2.0")


def delta_jars() -> list[Path]:
    """Return the jars of Delta's own writer; empty if they cannot be fetched."""
    return _fetched(_DELTA, cache_directory() / "spark-delta-4.4.0")


def _fetched(jars: Iterable[Jar], folder: Path) -> list[Path]:
    files = {folder / jar.file: jar for jar in jars}
    for file, jar in files.items():
        if not file.is_file():
            _fetch(jar, folder)
        if not file.is_file():
            return []
        if hashlib.sha256(file.read_bytes()).hexdigest() != jar.sha256:
            print(f"{file} has another checksum than {jar.sha256}: remove it", file=sys.stderr)  # noqa: T201 - a note
            return []
    return list(files)


def _fetch(jar: Jar, folder: Path) -> None:
    """Download one jar by the Ivy inside pyspark; a failure leaves no file."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="resolving-") as work:
        ivy = Path(work) / "ivy.xml"
        ivy.write_text(
            '<ivy-module version="2.0"><info organisation="bench" module="peer"/><dependencies>'
            f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.version}" transitive="false"/>'
            "</dependencies></ivy-module>"
        )
        command = [
            *(find_java(), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-ivy", str(ivy)),
            *("-cache", str(Path(work) / "cache"), "-confs", "default", "-types", "jar", "bundle"),
            *("-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"),
        ]
        subprocess.run(command, capture_output=True, check=False)
        found = Path(work) / "jars" / jar.file
        if found.is_file():
            found.rename(folder / jar.file)
