"""The Spark session of an agent: its JVM, its settings, and the Python that its processes are."""

import contextlib
import os
import re
import socketserver
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, accumulators
from pyspark.sql import SparkSession

from spark_sink.agent import worker_daemon
from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.start.class_training import java_options
from spark_sink.agent.start.warm_python import warm_python

if TYPE_CHECKING:
    from collections.abc import Iterator

# Names of settings that Spark itself hides in its pages (spark.redaction.regex).
_SECRET = re.compile("(?i)secret|password|token|access[.]?key")


@contextmanager
def python(settings: AgentSettings) -> "Iterator[str]":
    """Yield the Python that Spark starts its processes with: the user's, or one that is forked with modules loaded."""
    # Otherwise hundreds of short-lived threads would each leave pages in a separate arena.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    chosen = os.environ.get("PYSPARK_PYTHON", sys.executable)
    local = settings.master.startswith("local") and "spark.pyspark.python" not in settings.spark
    if not (local and _is_this_python(chosen)):
        yield chosen
        return
    with warm_python() as command:
        yield str(command or chosen)


def _is_this_python(command: str) -> bool:
    """Whether a command is this interpreter in this environment, also under another of its names."""
    chosen, this = Path(command), Path(sys.executable)
    return chosen == this or (chosen.parent == this.parent and chosen.exists() and chosen.samefile(this))


@contextmanager
def session(settings: AgentSettings, command: str) -> "Iterator[SparkSession]":
    """Start Spark, whose Python processes are started by `command`; stop it at the end of the block."""
    os.environ["PYSPARK_PYTHON"] = command
    given = {
        "spark.app.name": settings.agent,
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": java_options(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": worker_daemon.MODULE,
        **settings.spark,
    }
    # pyspark passes the configuration to the JVM as process arguments, which every user of the machine can read.
    open_ = {name: value for name, value in given.items() if not _SECRET.search(name)}
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(open_.items())))  # noqa: SLF001
    builder = SparkSession.builder.config(map=dict(given))
    accumulators.AccumulatorTCPServer.handle_error = _tell_but_the_end  # type: ignore[assignment, method-assign]
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        with contextlib.suppress(Py4JError, OSError):  # the JVM may be the lost process
            spark.stop()


def _tell_but_the_end(server: accumulators.AccumulatorTCPServer, request: object, address: object) -> None:
    """Ignore the end of a connection: if the JVM ends during a batch, pyspark would print a traceback."""
    if not isinstance(sys.exc_info()[1], EOFError):
        socketserver.BaseServer.handle_error(server, request, address)  # type: ignore[arg-type]
