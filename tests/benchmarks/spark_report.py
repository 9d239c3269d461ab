"""The report of the Spark source's benchmarks, build/bench/spark.json, and the jars of the peer."""

import subprocess
from functools import partial
from pathlib import Path

from spark_sink.agent.start.java_command import cache_directory, find_java
from spark_sink.demo.cluster.kafka_jars import _ivy_jar
from tests.benchmarks import report

save = partial(report.save, subject="spark", libraries=("pyspark", "pyarrow", "librdkafka"))
"""Puts a section into the report and prints it."""

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
