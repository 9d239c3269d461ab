"""Reports of the benchmarks: one file a subject in build/bench, one section a benchmark, each with its machine."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import confluent_kafka

FOLDER = Path(__file__).parents[2] / "build" / "bench"


def save(section: str, figures: dict[str, Any], *, subject: str, libraries: Iterable[str]) -> None:
    """Put a section into the report of a subject and print it.

    Args:
        section: name of the section; it replaces one of the same name.
        figures: what was measured, as JSON values.
        subject: name of the report's file, without its ending.
        libraries: distributions whose versions the section has; `librdkafka` is the library in confluent-kafka.
    """
    file = FOLDER / f"{subject}.json"
    report = json.loads(file.read_text()) if file.exists() else {}
    report[section] = {"machine": _machine(libraries), **figures}
    FOLDER.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=1))
    print(f"\n{section}: {json.dumps(report[section], indent=1)}")  # noqa: T201 -- a benchmark prints its figures


def _machine(libraries: Iterable[str]) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        **{name: _version(name) for name in libraries},
    }


def _version(library: str) -> str:
    return confluent_kafka.libversion()[0] if library == "librdkafka" else importlib.metadata.version(library)
