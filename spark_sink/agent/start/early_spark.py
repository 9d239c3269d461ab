"""Launches Spark's JVM and Python while this process still loads its modules and asks brokers and tables.

The JVM takes a second until it listens. If a check finds a fault, the JVM ends without any output: nothing reads
what it writes to standard error until the checks have passed.
"""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.start.spark_archive import java_options
from spark_sink.agent.start.warm_python import CHOSEN, warm_processes
from spark_sink.agent.start.worker_modules import DAEMON

# Names of settings that Spark itself hides in its pages (spark.redaction.regex).
_SECRET = re.compile("(?i)secret|password|token|access[.]?key")
_DEFAULT_HEAP = AgentSettings.model_fields["driver_memory"].default
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
# What Spark keeps of earlier batches for its pages, which an agent does not show: 1,000 executions, 100 of a query's
# reports with the offsets of each partition.
_FEW_KEPT = {
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}
# The tasks write the files, so a few rows a batch pass through Spark: the compiler of expressions would take 0.3 s of
# the start to load itself and compile the first.
_FEW_ROWS = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_STDERR = 2
_END_S = 10.0


class EarlySpark:
    """A JVM that is being launched.

    Args:
        conf: the configuration of the session.
        python: the command that forks Spark's Python processes; None if Spark starts them.
    """

    def __init__(self, conf: Mapping[str, str], python: str | None = None) -> None:
        self.conf = dict(conf)
        self.python = python
        # pyspark passes the configuration to the JVM as process arguments, which every user of the machine can read.
        shown = SparkConf(loadDefaults=False)
        shown.setAll([(name, value) for name, value in conf.items() if not _SECRET.search(name)])
        self._said, write_end = os.pipe()
        self._shown: subprocess.Popen[bytes] | None = None
        pool = ThreadPoolExecutor(1, thread_name_prefix="launch")
        self._launched: Future[JavaGateway] = pool.submit(launch_gateway, shown, {"stderr": write_end})
        self._launched.add_done_callback(lambda _: os.close(write_end))
        pool.shutdown(wait=False)

    def gateway(self) -> JavaGateway:
        """Show what the JVM writes from now on, and wait until it listens.

        Raises:
            PySparkRuntimeError: it ended.
        """
        # By a process: a thread of this one would make the JVM wait, and would lose what it says last.
        self._shown = subprocess.Popen(["cat"], stdin=self._said, stdout=_STDERR)  # noqa: S607 -- the system's
        return self._launched.result()

    def end(self) -> None:
        """End the JVM, and wait until its last line is shown."""
        if self._launched.exception() is None:
            jvm = self._launched.result().proc
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                jvm.stdin.close()
                jvm.wait(_END_S)
        os.close(self._said)
        if self._shown is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._shown.wait(_END_S)


@contextmanager
def early_spark(settings: AgentSettings) -> Iterator[EarlySpark]:
    """Launch the JVM of an agent; it ends with the block.

    Raises:
        ClusterError: there is no Java 17 or newer.
    """
    with _python(settings) as python:
        early = EarlySpark(
            {
                "spark.app.name": settings.agent,
                "spark.master": settings.master,
                "spark.driver.memory": settings.driver_memory,
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.session.timeZone": "UTC",
                # The query has a filter at most; compiling a class for it takes longer than it saves.
                "spark.sql.codegen.wholeStage": "false",
                # Before each row Spark computes the size of the Arrow batch for a sink in Python. Where a column is a
                # list, as in that of bad records, the time for it grows with the rows of the batch.
                "spark.sql.execution.arrow.maxRecordsPerBatch": "2500",
                "spark.python.daemon.module": DAEMON,
                **(_FEW_ROWS if settings.landing == "direct" else {}),
                **({} if settings.spark.get("spark.ui.enabled") == "true" else _FEW_KEPT),
                **_checkpoint_files(settings.checkpoint),
                **settings.spark,
                _JAVA_OPTIONS: java_options(
                    settings.spark.get(_JAVA_OPTIONS, ""), default_heap=settings.driver_memory == _DEFAULT_HEAP
                ),
            },
            python,
        )
        try:
            yield early
        finally:
            early.end()


def _checkpoint_files(checkpoint: str) -> dict[str, str]:
    """Return the settings for a checkpoint in a local folder.

    Spark's default asks Hadoop whether files are symbolic links. Without its native library, Hadoop starts a process
    for each answer, 16 a batch.
    """
    if "://" in checkpoint:
        return {}
    return {"spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"}


@contextmanager
def _python(settings: AgentSettings) -> Iterator[str | None]:
    """Let Spark start its processes with the user's Python, or fork them with modules loaded: yield that command."""
    # Otherwise hundreds of short-lived threads would each leave pages in a separate arena.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    local = settings.master.startswith("local") and "spark.pyspark.python" not in settings.spark
    with warm_processes() if local else nullcontext(False) as forked:  # noqa: FBT003 -- no process is forked
        os.environ.setdefault(CHOSEN, sys.executable)
        yield os.environ[CHOSEN] if forked else None
