"""Archives of a JVM's classes (application class-data sharing, JEP 350), kept from run to run.

A JVM that maps such a file into memory neither reads nor verifies its classes: Spark starts in half the time. The file
is made once for a Java and a set of jars, when a JVM that was started with `recording` ends by itself. A JVM checks
jars and version itself, and goes on without a file that does not fit.

The JVM that makes the file runs a query that loads the classes of an agent's query, without Kafka and without a table.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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

from spark_sink.agent.start.java_command import cache_directory, find_java, locate_java
from spark_sink.errors import ClusterError

_SHOWN = 12  # hexadecimal digits of each of the two hashes in a file's name
# A file that no longer fits costs time, and its warnings would confuse.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
# Newer JVMs map an archive to a random address, and so change every pointer in it: 150 MB cannot be shared, and the
# start takes longer. The addresses of the heap and of libraries stay random.
_AT_ITS_ADDRESS = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
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
_LONGEST_S = 3600.0  # of a recording that still runs


def archive_of(name: str, java: str, jars: Path) -> Path:
    """Return where the archive for this Java and these jars is, or would be.

    The name has a hash of the two places, so that environments beside each other keep theirs, and one of what is there.

    Raises:
        ClusterError: there is no folder for it.
    """
    places = (Path(java).resolve(), jars.resolve())
    about = [(file, file.stat()) for file in (places[0], *sorted(jars.glob("*.jar")))]
    # Seconds, as the JVM compares them: layers of a container image keep no fractions.
    content = "".join(f"{file} {found.st_size} {int(found.st_mtime)}\n" for file, found in about)
    return cache_directory() / f"classes-{name}-{_hash(' '.join(map(str, places)))}-{_hash(content)}.jsa"


def using(archive: Path) -> str:
    """Return the JVM's options to use an archive; none where there is no such file, or where it cannot be read."""
    return f"-XX:SharedArchiveFile={archive} {_AT_ITS_ADDRESS} {_QUIET}" if os.access(archive, os.R_OK) else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN]


@contextmanager
def recording(archive: Path) -> Iterator[str]:
    """Make an archive: yield the options of a JVM that ends by itself within the block.

    Raises:
        OSError: the folder cannot be written, or the JVM wrote no archive.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    _remove_killed(archive.parent)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="recording-") as work:
        written = Path(work) / archive.name
        yield f"-XX:ArchiveClassesAtExit={written} {_QUIET}"
        written.replace(archive)
    # Of what was in the same folder before: each has 150 MB.
    kind = archive.name.rpartition("-")[0]
    for other in archive.parent.glob(f"{kind}-*.jsa"):
        if other != archive:
            other.unlink(missing_ok=True)


def _remove_killed(folder: Path) -> None:
    """Remove what a killed recording has left."""
    for work in folder.glob("recording-*"):
        with suppress(OSError):
            if time.time() - work.stat().st_mtime > _LONGEST_S:
                shutil.rmtree(work)


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
    with recording(archive) as options:
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
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
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
