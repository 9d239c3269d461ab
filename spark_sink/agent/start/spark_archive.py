"""The archive of Spark's classes, and an agent's options of the JVM.

The JVM that makes the archive runs a query that loads the classes of an agent's query, without Kafka and without a
table.
"""

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from spark_sink.agent.start.class_archive import archive_of, recording, using
from spark_sink.agent.start.java_command import find_java, locate_java
from spark_sink.agent.start.quick_session import quick_session
from spark_sink.errors import ClusterError

# By default the heap begins with 1/64 of the machine's memory, even if it needs much less, and keeps up to 70 % free.
_HEAP = "-XX:+UseSerialGC -Xms96m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=25"
_YOUNG = "-Xmn40m"
# The start's compilations leave 25 MB of native memory free.
_NATIVE = "-XX:+IgnoreUnrecognizedVMOptions -XX:TrimNativeHeapInterval=10000"
# The optimizing compiler (C2) took a fifth of the start's CPU time, for methods that a batch calls a few thousand
# times. These are 40 times the defaults: a query that moves rows through the JVM is there within seconds.
_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 "
    "-XX:Tier4CompileThreshold=600000 -XX:Tier4BackEdgeThreshold=1600000"
)
_REST = f"{_NATIVE} {_COMPILE_LATER} -Xshare:auto"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_BATCHES = 5
_END_S = 120.0
_NEEDED = 200e6  # bytes; an archive has about 150 MB


def spark_archive() -> Path:
    """Return where the archive of Spark's classes is, or would be.

    Raises:
        ClusterError: there is no Java, or no folder for the archive.
    """
    return archive_of(f"spark-{pyspark.__version__}", locate_java(), Path(pyspark.__file__).parent / "jars")


def java_options(chosen: str = "", *, default_heap: bool) -> str:
    """Return the options of an agent's JVM, with the archive where there is one.

    Args:
        chosen: the user's options. They come last, so that they replace ours; with another collector, our sizes of
            the heap's parts are left out.
        default_heap: whether the heap has the default size. In another one, which people choose for rows that move
            through the JVM, the young generation grows with the heap.

    Raises:
        ClusterError: there is no Java 17 or newer.
    """
    archive = _archive_options()
    if not archive:  # else the version was checked when the archive was made; a check starts a JVM
        find_java()
    heap = f"{_HEAP} {_YOUNG}" if default_heap else _HEAP
    return " ".join(filter(None, ("" if _COLLECTOR.search(chosen) else heap, _REST, archive, chosen)))


def _archive_options() -> str:
    try:
        return using(spark_archive())
    except ClusterError:  # an archive only saves time, and `find_java` reports a missing Java
        return ""


def make_spark_archive() -> Path:
    """Run a short query in a Spark of its own, and archive its classes.

    Raises:
        ClusterError: there is no Java 17 or newer.
        OSError: the archive cannot be written.
        TimeoutError: the JVM did not end.
    """
    find_java()
    archive = spark_archive()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with recording(archive) as options, _killed_if_interrupted():
        if shutil.disk_usage(archive.parent).free < _NEEDED:  # else the JVM's own words come, after a minute
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        conf = SparkConf(loadDefaults=False)
        conf.setAll(
            [
                ("spark.master", "local[2]"),
                ("spark.ui.enabled", "false"),
                ("spark.ui.showConsoleProgress", "false"),
                ("spark.log.level", "OFF"),  # stopping the query aborts a task, which Spark would tell
                ("spark.driver.extraJavaOptions", f"{_HEAP} {_REST} {options}"),
            ]
        )
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 -- keeps the JVM's process at hand
        spark = quick_session(dict(conf.getAll()))
        _run_query(spark)
        jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr] # noqa: SLF001 -- keeps the JVM's process at hand
        spark.stop()
        jvm.stdin.close()
        try:
            jvm.wait(_END_S)
        except subprocess.TimeoutExpired as error:
            jvm.kill()
            raise TimeoutError(f"the JVM did not write it within {_END_S:.0f} s") from error
    return archive


@contextmanager
def _killed_if_interrupted() -> Iterator[None]:
    """Kill the processes that the block has started, if it does not end by itself.

    A JVM that was interrupted before its driver connected never ends: pyspark has no handle of it yet, and it no
    longer reads its input, whose end would stop it.
    """
    before = psutil.Process().children(recursive=True)
    try:
        yield
    except BaseException:
        for started in psutil.Process().children(recursive=True):
            if started not in before:
                with suppress(psutil.NoSuchProcess):
                    started.kill()
        raise


def _run_query(spark: SparkSession) -> None:
    spark.dataSource.register(_Numbers)
    with tempfile.TemporaryDirectory(prefix="azimuth-") as folder:
        rows = spark.readStream.format("azimuth-numbers").load().where("n >= 0").selectExpr("n + 1 AS n")
        writer = rows.writeStream.format("azimuth-numbers").option("checkpointLocation", folder)
        query = writer.trigger(processingTime="10 milliseconds").start()
        while query.isActive and len(query.recentProgress) < _BATCHES:
            query.awaitTermination(1)
        query.stop()


class _Numbers(DataSource):
    """One number a batch, written nowhere."""

    @classmethod
    def name(cls) -> str:
        return "azimuth-numbers"

    def schema(self) -> str:
        return "n int"

    def streamReader(self, schema: StructType) -> "_Reader":  # noqa: ARG002, N802 -- Spark's names
        return _Reader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> "_Writer":  # noqa: ARG002, FBT001, N802 -- Spark's signature
        return _Writer()


class _Reader(DataSourceStreamReader):
    def __init__(self) -> None:
        self._end = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 -- Spark's name
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: ARG002, N802 -- Spark's signature
        self._end += 1
        return {"n": self._end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:  # noqa: ARG002 -- Spark's signature
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 -- Spark's signature
        yield pa.record_batch({"n": pa.array([1], pa.int32())})


class _Writer(DataSourceStreamWriter):
    def write(self, iterator: Iterator[object]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: object, batchId: int) -> None:  # noqa: N803 -- Spark's name
        pass

    def abort(self, messages: object, batchId: int) -> None:  # noqa: N803 -- Spark's name
        pass
