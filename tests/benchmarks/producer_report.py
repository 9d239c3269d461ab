"""The report of the producer's benchmarks: build/bench/producer.json, one section per benchmark."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import confluent_kafka

from producer import AZAwareProducer
from producer.partitioning import produce_interpreted

REPORT = Path(__file__).parents[2] / "build" / "bench" / "producer.json"


class PureProducer(AZAwareProducer):
    """The producer as it is where it was built without a C compiler."""

    __slots__ = ()
    _hot: ClassVar[ModuleType] = produce_interpreted
    produce = produce_interpreted.produce


def machine() -> dict[str, Any]:
    """Describe the machine of the measurement."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "confluent-kafka": importlib.metadata.version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
        "kafka-python": importlib.metadata.version("kafka-python"),
    }


def save(section: str, figures: dict[str, Any]) -> None:
    """Put a section into the report and print it."""
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    report[section] = {"machine": machine(), **figures}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=1))
    print(f"\n{section}: {json.dumps(report[section], indent=1)}")  # noqa: T201 - a benchmark prints its figures
