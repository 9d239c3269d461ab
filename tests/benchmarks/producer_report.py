"""The report of the producer's benchmarks: build/bench/producer.json, one section per benchmark."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

import confluent_kafka

REPORT = Path(__file__).parents[2] / "build" / "bench" / "producer.json"


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
