"""Holds an agent at one point of a batch until it is killed; loaded by every Python process whose path has this folder.

AZIMUTH_KILL_POINT names the point, and AZIMUTH_KILL_MARK a file that is written when a process is there.
"""

import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

_SINK, _DELTA = "spark_sink.sink.delta_sink:SinkWriter", "spark_sink.lake.delta_table:"
_CATALOG, _SESSION = "pyiceberg.catalog.sql:SqlCatalog", "sqlalchemy.orm:Session"


def _hold() -> None:
    Path(os.environ["AZIMUTH_KILL_MARK"]).touch()
    while True:
        time.sleep(60)


def _before(place: str, name: str, *, call: int = 1, step: Callable[[], None] = _hold) -> None:
    """Do something where a function is called for the given time, before it runs; by default hold the process."""
    owner = _owner(place)
    real, calls = getattr(owner, name), itertools.count(1)

    def held(*given: Any, **named: Any) -> Any:
        if next(calls) == call:
            step()
        return real(*given, **named)

    setattr(owner, name, held)


def _after(place: str, name: str) -> None:
    """Hold a process where it has called a function."""
    owner = _owner(place)
    real = getattr(owner, name)

    def held(*given: Any, **named: Any) -> None:
        real(*given, **named)
        _hold()

    setattr(owner, name, held)


def _owner(place: str) -> Any:
    module, _, kind = place.partition(":")
    return getattr(import_module(module), kind) if kind else import_module(module)


def _asking() -> None:
    """The files of an Iceberg commit are written, and the catalog does not name them; a Delta log has no entry."""
    _before(_CATALOG, "commit_table", step=partial(_before, _SESSION, "commit"))
    _before(_DELTA, "commit")


def _unanswered() -> None:
    """The catalog or the log has the commit, and the program does not know it."""
    _before(_CATALOG, "commit_table", step=partial(_after, _SESSION, "commit"))
    _after(_DELTA, "commit")


_POINTS: dict[str, Callable[[], None]] = {
    "files": partial(_before, "spark_sink.lake.parquet_landing:Landing", "write"),
    "landed": partial(_before, _SINK, "commit"),
    "asking": _asking,
    "unanswered": _unanswered,
    "named": partial(_before, "spark_sink.sink.quarantine.quarantine_commit:", "add_quarantined"),
    "committed": partial(_after, _SINK, "commit"),
    # Spark has ended a batch when it asks for the next one, and the answer commits the group's offsets.
    "checkpointed": partial(_before, "spark_sink.source.stream_reader:KafkaGroupReader", "latestOffset", call=2),
}

if "AZIMUTH_KILL_POINT" in os.environ:
    _POINTS[os.environ["AZIMUTH_KILL_POINT"]]()
