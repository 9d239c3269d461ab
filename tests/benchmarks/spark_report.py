"""The report of the Spark source's benchmarks, build/bench/spark.json, and the jars of the peer."""

import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import confluent_kafka

from spark_sink.agent.start.java_command import cache_directory, find_java
from spark_sink.demo.cluster.kafka_jars import _ivy_jar

REPORT = Path(__file__).parents[2] / "build" / "bench" / "spark.json"

# The connector of 4.2.0 with its dependencies that Spark lacks; its own pom requires a token provider newer than any
# published one.
_PEER = {
    "org.apache.spark": [("spark-sql-kafka-0-10_2.13", "4.2.0"), ("spark-token-provider-kafka-0-10_2.13", "4.0.0")],
    "org.apache.kafka": [("kafka-clients", "3.9.1")],
    "org.apache.commons": [("commons-pool2", "2.12.1")],
}


def peer_jars() -> list[Path]:
    """Return the jars of Spark's own connector, resolved once into the cache; empty if that is not possible."""
    folder = cache_directory() / "spark-kafka-4.2.0"
    if not folder.is_dir():
        for organisation, artifacts in _PEER.items():
            for name, version in artifacts:
                _retrieve(organisation, name, version, folder)
    jars = sorted(folder.glob("*.jar")) if folder.is_dir() else []
    return jars if len(jars) == sum(map(len, _PEER.values())) else []


def _retrieve(organisation: str, name: str, version: str, folder: Path) -> None:
    ivy = folder.parent / "ivy-peer.xml"
    ivy.parent.mkdir(parents=True, exist_ok=True)
    ivy.write_text(
        '<ivy-module version="2.0"><info organisation="bench" module="peer"/><dependencies>'
        f'<dependency org="{organisation}" name="{name}" rev="{version}" transitive="false"/>'
        "</dependencies></ivy-module>"
    )
    command = [
        *(find_java(), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-ivy", str(ivy)),
        *("-cache", str(folder.parent / "ivy-peer"), "-confs", "default", "-types", "jar"),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    ]
    subprocess.run(command, capture_output=True, check=False)


def machine() -> dict[str, Any]:
    """Describe the machine of the measurement."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "pyspark": importlib.metadata.version("pyspark"),
        "pyarrow": importlib.metadata.version("pyarrow"),
        "librdkafka": confluent_kafka.libversion()[0],
    }


def save(section: str, figures: dict[str, Any], file: Path = REPORT) -> None:
    """Put a section into a report and print it."""
    report = json.loads(file.read_text()) if file.exists() else {}
    report[section] = {"machine": machine(), **figures}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=1))
    print(f"\n{section}: {json.dumps(report[section], indent=1)}")  # noqa: T201 -- a benchmark prints its figures
