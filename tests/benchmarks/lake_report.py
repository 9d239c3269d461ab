"""The report of the benchmarks of tables: build/bench/lake.json, one section a benchmark."""

import json
from pathlib import Path
from typing import Any

from tests.benchmarks.spark_report import machine

REPORT = Path(__file__).parents[2] / "build" / "bench" / "lake.json"


def save(section: str, figures: dict[str, Any]) -> None:
    """Put a section into the report and print it."""
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    report[section] = {"machine": machine(), **figures}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=1))
    print(f"\n{section}: {json.dumps(report[section], indent=1)}")  # noqa: T201 -- a benchmark prints its figures
