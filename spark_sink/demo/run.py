"""Runs the demo, from the first broker to the report, and shows its progress."""

import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from spark_sink.demo.agents import adopt_orphans, end_descendants
from spark_sink.demo.cluster import Cluster
from spark_sink.demo.figures import figures
from spark_sink.demo.flights import PARTITIONS, load_flights
from spark_sink.demo.ingestion import Ingestion
from spark_sink.demo.producing import PRODUCER_SETTINGS, Loader, Shipment, measure_default, sample_routes
from spark_sink.demo.report import render
from spark_sink.demo.settings import DemoSettings
from spark_sink.demo.timeline import CommitLog
from spark_sink.demo.topics import create_topics
from spark_sink.demo.verification import verify_flights
from spark_sink.errors import ClusterError, DemoError


def run_demo(settings: DemoSettings, console: Console) -> dict[str, Any]:
    """Run the demo, write report.json and report.html, and return the report.

    Raises:
        DemoError: another demo runs in the directory, or a step failed.
        ClusterError: the brokers could not be started.
    """
    adopt_orphans()
    with _locked(settings.directory), _ended_by_signals():
        try:
            return _run(settings, console)
        finally:
            end_descendants()


def _run(settings: DemoSettings, console: Console) -> dict[str, Any]:
    began = time.monotonic()
    seconds: dict[str, float] = {}
    _clear(settings.directory)
    with Steps(console) as bars:
        with _timed(seconds, "cluster"):
            step = bars.add_task("starting three brokers", total=None)
            directory = settings.directory / "cluster"
            cluster = Cluster.up(directory, racks=settings.zones, tied=True, brief=True, in_memory=True)
            bars.update(step, total=1, completed=1)
        with cluster:
            step = bars.add_task("creating the topics", total=None)
            flights = load_flights().slice(0, settings.flights)
            create_topics(
                cluster.bootstrap_servers,
                flights.column("topic").unique().to_pylist(),
                partitions=PARTITIONS,
                replicas=settings.replicas,
                config={"min.insync.replicas": str(max(1, settings.replicas - 1))},
            )
            bars.update(step, total=1, completed=1)
            with Loader(cluster.bootstrap_servers, settings.zones, PRODUCER_SETTINGS) as loader:
                step = bars.add_task("agents start", total=flights.num_rows)
                run = _ingestion(settings, cluster, loader, flights, bars, step)
                # Spark takes seconds to start, so the flights are produced in the meantime.
                run.start()
                with _timed(seconds, "produce"):
                    run.note_bulk(_produce_bulk(settings, loader, flights, bars))
                with _timed(seconds, "ingest"):
                    default = _baseline(settings, cluster, flights, bars)
                    run.run()
                    bars.update(step, description="ingested")
                shipment = loader.shipment()
    report = _report(settings, run, shipment, default, seconds, began)
    _write(settings.directory, report)
    return report


def _produce_bulk(settings: DemoSettings, loader: Loader, flights: pa.Table, bars: Progress) -> int:
    count = int(settings.bulk * flights.num_rows)
    step = bars.add_task("producing from three zones", total=count)
    loader.send(flights.slice(0, count), 0, lambda n: bars.advance(step, n))
    loader.flush()
    return count


def _baseline(settings: DemoSettings, cluster: Cluster, flights: pa.Table, bars: Progress) -> Shipment:
    sample = sample_routes(flights, settings.default_share)
    step = bars.add_task("default partitioner, a sample", total=sample.num_rows)
    return measure_default(
        cluster.bootstrap_servers, sample, settings.zones, PRODUCER_SETTINGS, lambda n: bars.advance(step, n)
    )


def _ingestion(  # noqa: PLR0913, PLR0917 - the parts of an ingestion
    settings: DemoSettings, cluster: Cluster, loader: Loader, flights: pa.Table, bars: Progress, step: TaskID
) -> Ingestion:
    return Ingestion(
        settings=settings,
        cluster=cluster,
        loader=loader,
        flights=flights,
        progress=lambda rows, doing: bars.update(step, completed=rows, description=doing),
        log=CommitLog(settings.table, settings.group),
    )


def _report(  # noqa: PLR0913, PLR0917 - the parts of a report
    settings: DemoSettings,
    run: Ingestion,
    shipment: Shipment,
    default: Shipment,
    seconds: dict[str, float],
    began: float,
) -> dict[str, Any]:
    with _timed(seconds, "verify"):
        verdict = verify_flights(settings.table, run.flights)
    seconds["total"] = time.monotonic() - began
    found = figures(run, az_aware=shipment, default=default, seconds=seconds, cores=os.cpu_count() or 1)
    return {**verdict.as_dict(), **found, "notes": _notes(settings)}


def _notes(settings: DemoSettings) -> list[str]:
    bulk = f"{settings.bulk:.0%} of the flights are produced while the agents start, the rest arrives while they work"
    replicas = f"Each topic has {settings.replicas} replicas, min.insync.replicas {max(1, settings.replicas - 1)}"
    return [
        f"{bulk}, at {settings.live_rate:.0f} records per second; freshness is measured on the rest only.",
        f"{replicas}; the producers are idempotent and wait for all replicas in sync.",
        "The default partitioner is librdkafka's, keyed by tail number, on all flights of every fifth route.",
    ]


def _write(directory: Path, report: Mapping[str, Any]) -> None:
    for name, text in (("report.json", json.dumps(report, indent=1)), ("report.html", render(report))):
        new = directory / f"{name}.new"
        new.write_text(text)
        new.replace(directory / name)


def _clear(directory: Path) -> None:
    """Remove the files of an earlier run, and its brokers if it was killed."""
    try:
        Cluster.open(directory / "cluster").down()
    except ClusterError:
        shutil.rmtree(directory / "cluster", ignore_errors=True)
    for name in ("table", "table_quarantine", "checkpoints", "agents", "telemetry", "logs"):
        shutil.rmtree(directory / name, ignore_errors=True)
    for name in ("agents", "telemetry", "logs"):
        (directory / name).mkdir(parents=True)
    for name in ("report.json", "report.html"):
        (directory / name).unlink(missing_ok=True)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise DemoError(f"{directory} cannot be written: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DemoError(f"another demo runs in {directory}: wait for its end, or name another --dir") from error
        yield


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Make SIGTERM raise an exception as Ctrl-C does, so that no process is left behind.

    confluent-kafka replaces an exception that a signal handler raises during a producer's callback with a SystemError,
    so a SystemError after the signal also means the requested end.
    """
    asked: list[BaseException] = []

    def end(number: int, _frame: FrameType | None) -> None:
        asked.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
        raise asked[0]

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except SystemError as error:
        if asked:
            raise asked[0] from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[name] = time.monotonic() - began


class Steps(Progress):
    """Progress bars; without a terminal (a pipe, a log), each step prints a line when it begins.

    Args:
        console: receives the output.
    """

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<42}"), BarColumn(12), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=console)
        self._began = time.monotonic()
        self._said: set[str] = set()

    def add_task(self, description: str, *arguments: Any, **more: Any) -> TaskID:  # noqa: ANN401 - rich's own
        """Begin a step."""
        self._say(description)
        return super().add_task(description, *arguments, **more)

    def update(self, task_id: TaskID, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - rich's own
        """Update a step; another description starts another step."""
        self._say(more.get("description"))
        super().update(task_id, *arguments, **more)

    def _say(self, description: str | None) -> None:
        if description is None or description in self._said or self.console.is_terminal:
            return
        self._said.add(description)
        self.console.print(f"{time.monotonic() - self._began:6.1f} s  {description}")
