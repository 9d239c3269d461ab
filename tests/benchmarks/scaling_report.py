"""The report of the scaling benchmarks: build/bench/scaling.json, one section per benchmark."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "build" / "bench"
REPORT = FOLDER / "scaling.json"


def save(section: str, figures: dict[str, Any]) -> None:
    """Put a section into the report and print it."""
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    machine = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "numpy": importlib.metadata.version("numpy"),
    }
    report[section] = {"machine": machine, **figures}
    FOLDER.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=1))
    print(f"\n{section}: {json.dumps(report[section], indent=1)}")  # noqa: T201 - a benchmark prints its figures
