"""The report of the assignors' benchmarks: build/bench/assignors.json, one section per benchmark."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "build" / "bench"
REPORT = FOLDER / "assignors.json"


def machine() -> dict[str, Any]:
    """Describe the machine of the measurement."""
    versions = {
        name: importlib.metadata.version(name)
        for name in ("confluent-kafka", "kafka-python", "numpy", "mmh3", "uhashring")
    }
    facts = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    return {**facts, "load": os.getloadavg()[0], **versions}


def save(section: str, figures: dict[str, Any]) -> None:
    """Put a section into the report and print it."""
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    report[section] = {"machine": machine(), **figures}
    FOLDER.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=1))
    print(f"\n{section}: {json.dumps(report[section], indent=1)}")  # noqa: T201 - a benchmark prints its figures
