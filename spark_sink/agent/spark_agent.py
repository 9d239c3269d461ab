"""One ingestion agent: a Spark driver with one query, from a consumer group into a table, until a signal stops it."""

import logging
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_sink.agent.agent_name_lock import only_agent_of_its_checkpoint, only_agent_of_its_name
from spark_sink.agent.agent_settings import AVAILABLE_NOW, AgentSettings
from spark_sink.agent.checkpoint_of_table import bind_checkpoint
from spark_sink.agent.commit_notes import NoteCounts, Notes
from spark_sink.agent.progress_log import ProgressLog, StartSteps
from spark_sink.agent.sink_checks import check_options, refuse_faults
from spark_sink.agent.spark_master import cluster_cores
from spark_sink.agent.spark_session import session
from spark_sink.agent.start.early_reader import early_reader
from spark_sink.agent.start.early_spark import EarlySpark
from spark_sink.agent.stop_signal import StopSignal
from spark_sink.errors import DISK_FULL, QueryError, SparkSinkError
from spark_sink.lake.ops_log.ops_counts import OpsCounts
from spark_sink.lake.ops_log.ops_writer import written
from spark_sink.monitoring.logs.masked_secrets import Mask, secret_values
from spark_sink.sink.delta_sink import DeltaExactlyOnceSink
from spark_sink.sink.direct_landing import HAS_FILES
from spark_sink.sink.iceberg_sink import IcebergExactlyOnceSink
from spark_sink.source.kafka_source import KafkaGroupSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)
_LOOK_S = 1
_TRACE = "Traceback (most recent call last):"
_ENDED = "the query ended: "
# Spark's words for a batch that another query has already written to the checkpoint
_TWO_QUERIES = ("Multiple streaming queries are concurrently using", "Multiple streaming jobs detected")


def run(settings: AgentSettings, early: EarlySpark, stop: StopSignal) -> None:
    """Ingest until SIGTERM or SIGINT, or, with the trigger `available-now`, until caught up.

    Args:
        settings: of the agent.
        early: the JVM, launched before this module was loaded.
        stop: the signals that end it.

    Raises:
        OptionError: an agent of this name or checkpoint is running here, or the checkpoint belongs to another table.
        StartError: the brokers, the registry or the table cannot be used.
        QueryError: an option is invalid, the query failed, or its JVM was lost; the message is the last sentence of the
            cause.
    """
    steps = StartSteps()
    check_options(settings)
    with only_agent_of_its_name(settings), only_agent_of_its_checkpoint(settings):
        refuse_faults(settings)
        bind_checkpoint(settings)
        steps.done("checked brokers, rights, the table and the checkpoint")
        counts = None
        if settings.ops is not None:
            counts = NoteCounts(OpsCounts(Mask(secret_values(settings.model_dump()))), Notes(settings).by_table)
            counts.begin()
        columns = {"kind": "spark", "group_id": settings.group, "agent": settings.agent}
        with written(settings.ops, counts, columns):
            _counted(settings, early, stop, steps, counts)


def _counted(
    settings: AgentSettings, early: EarlySpark, stop: StopSignal, steps: StartSteps, counts: NoteCounts | None
) -> None:
    """Ingest, and count the error that ends the query."""
    try:
        _ingest(settings, early, stop, steps)
    except SparkSinkError as error:
        if counts is not None:
            counts.failed((), error)
        raise


def _ingest(settings: AgentSettings, early: EarlySpark, stop: StopSignal, steps: StartSteps) -> None:
    try:
        with (
            _served(settings) as holding,
            early_reader(early.python, reader_options(settings, holding)),
            session(early) as spark,
        ):
            steps.done(f"Spark {spark.version} started")
            # Set after pyspark has installed its own handler for SIGINT.
            stop.wait_for_the_query()
            progress = ProgressLog(settings.table, Notes(settings).read)
            query = start(spark, settings, holding)
            steps.done(f"agent {settings.agent!r} of group {settings.group!r} writes to {settings.table}")
            while not (stop.asked or query.awaitTermination(_LOOK_S)):
                progress.look(lambda: _last_batch(query))
            query.stop()
            progress.log()
        log.info("agent %r has ended: %s", settings.agent, "it was stopped" if stop.asked else "it has caught up")
    except (PySparkException, Py4JError, ConnectionError) as error:
        if not stop.asked:
            raise QueryError(about_checkpoint(_sentence(error), settings.checkpoint)) from error
        # A service manager signals the JVM and Python's processes, too. A batch not committed is read again.
        log.info("the query ended with the signal: %s", _sentence(error))


def _sentence(error: Exception) -> str:
    """Extract what a user should read from an error of Spark or of its JVM."""
    try:
        if isinstance(error, PySparkException):  # of the query, or of an option before the query exists
            return cause(str(error))
        if isinstance(error, Py4JJavaError):  # without a class in pyspark, as of a folder that cannot be created
            return _thrown(str(error))
    except (Py4JError, ConnectionError):  # asked for its text, the JVM was gone
        pass
    return "the JVM of this agent was lost; the log above may say more"


def about_checkpoint(sentence: str, checkpoint: str) -> str:
    """Name the checkpoint and the way out where the JVM's error names neither: its disk is full, or two queries use it.

    Args:
        sentence: from an error of Spark; one of ours names its place.
        checkpoint: folder of the checkpoint.
    """
    if sentence.startswith(_ENDED) and any(one in sentence for one in _TWO_QUERIES):
        return f"{_ENDED}another query uses the checkpoint {checkpoint}: give each agent a checkpoint of its own"
    full = next((one for one in DISK_FULL if one in sentence), None)
    if full is None or not sentence.startswith(_ENDED):
        return sentence
    return (
        f"{_ENDED}{full}: free some space for the checkpoint {checkpoint}, or for Spark's temporary files, and start "
        "the agent again: it continues with the same batch"
    )


def _last_batch(query: "StreamingQuery") -> int | None:
    last = query.lastProgress
    return last.batchId if last is not None else None


def start(spark: SparkSession, settings: AgentSettings, holding: Path | None = None) -> "StreamingQuery":
    """Start the query of an agent.

    Args:
        spark: the session.
        settings: settings of the agent.
        holding: file for the assignment of its reader.
    """
    spark.dataSource.register(KafkaGroupSource)
    spark.dataSource.register(DeltaExactlyOnceSink)
    spark.dataSource.register(IcebergExactlyOnceSink)
    land, columns = settings.landing == "direct", None
    if land and settings.decodes:
        columns = spark.readStream.format("kafka-group").options(**settings.source_options()).load().schema.json()
    cores = cluster_cores(dict(spark.sparkContext.getConf().getAll()), spark.sparkContext.defaultParallelism)
    given = {"parallelism": str(cores), **reader_options(settings, holding, columns, land=land)}
    reader = spark.readStream.format("kafka-group").options(**given)
    sink = f"{settings.table_format}-exactly-once"
    rows = reader.load().where(HAS_FILES) if land else reader.load()
    writer = rows.writeStream.format(sink).options(**settings.sink_options(columns))
    if settings.trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=settings.trigger).start()


def reader_options(
    settings: AgentSettings, holding: Path | None, columns: str | None = None, *, land: bool = False
) -> dict[str, str]:
    """Return the options of the reader.

    Args:
        settings: settings of the agent.
        holding: file for the reader's assignment.
        columns: the schema of the rows, in Spark's JSON; None for the raw format, and before Spark has started.
        land: the reading tasks write the data files.
    """
    given = settings.source_options(columns, land=land)
    return given if holding is None else {**given, "holding": str(holding), "traffic": str(_traffic(holding))}


def cause(text: str) -> str:
    """Extract the sentence of the error that ended a query from Spark's message.

    Spark wraps the Python traceback of its worker; the important line is the last one, `<module>.<Error>: ...`. If a
    process died there is no such line, and Spark's own message may be empty.
    """
    for line in reversed(text.splitlines()):
        name, colon, sentence = line.strip().partition(": ")
        if colon and name.endswith("Error") and " " not in name:
            return sentence
    first = text.splitlines()[0] if text else ""
    said = first.rpartition("terminated with exception: ")[2].partition("SQLSTATE")[0].strip()
    raised = _raised(text)
    if raised:
        said = said.replace(_TRACE, raised) if _TRACE in said else raised
    return f"{_ENDED}{said or 'one of its processes was lost'}; the log above says more"


def _raised(text: str) -> str:
    """Extract the last exception of Python's traces, as `SystemExit: 0` or `EOFError`: a line that is not indented."""
    trace = text.rpartition(_TRACE)[2] if _TRACE in text else ""
    return next((line.strip() for line in trace.splitlines() if line and not line[0].isspace()), "")


def _thrown(text: str) -> str:
    """Extract the sentence of a Java exception from py4j's message: a line that begins `: <class>: `."""
    said = next((line.partition(": ")[2] for line in text.splitlines() if line.startswith(": ")), text)
    name, colon, sentence = said.partition(": ")
    return f"{_ENDED}{sentence if colon and ' ' not in name else said}; the log above says more"


@contextmanager
def _served(settings: AgentSettings) -> "Iterator[Path | None]":
    """Serve the metrics, if configured; yield the file for the assignment of the reader.

    This comes before the start of Spark, so that a port in use is reported immediately.
    """
    if settings.metrics_port is None:
        yield None
        return
    # Imported here, so that an agent without metrics does not load a client for them.
    from spark_sink.agent.agent_metrics import serve  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="azimuth-") as folder:
        holding = Path(folder) / "holding"
        _traffic(holding).mkdir()
        ended = serve(settings, holding, _traffic(holding))
        try:
            yield holding
        finally:
            ended.set()


def _traffic(holding: Path) -> Path:
    """Return the folder for what the tasks receive; those on other machines do not see it, and note nothing."""
    return holding.with_name("traffic")
