"""The Spark session of an agent, on a JVM that was launched early."""

import contextlib
import logging
import socketserver
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from py4j.protocol import Py4JError
from pyspark import SparkContext, accumulators
from pyspark.sql import SparkSession

from spark_sink.agent.start.early_spark import EarlySpark
from spark_sink.agent.start.quick_session import quick_session


@contextmanager
def session(early: EarlySpark) -> Iterator[SparkSession]:
    """Start Spark in the JVM; stop it at the end of the block.

    Raises:
        PySparkRuntimeError: the JVM ended.
    """
    SparkContext._ensure_initialized(gateway=early.gateway())  # noqa: SLF001 -- pyspark's way to bring a JVM of one's own
    leave_out_tracebacks()
    leave_out_testing()
    accumulators.AccumulatorTCPServer.handle_error = _tell_but_the_end  # type: ignore[assignment, method-assign]
    spark = quick_session(early.conf)
    try:
        yield spark
    finally:
        with contextlib.suppress(Py4JError, OSError):  # the JVM may be the lost process
            spark.stop()


def leave_out_tracebacks() -> None:
    """Keep py4j from logging the traceback of an error that it raises as well, beside the agent's own sentence."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # A lost connection is logged by the root logger.
    logging.getLogger().addFilter(_is_not_of_py4j)


def leave_out_testing() -> None:
    """Give pyspark the answers for which it would load its support for tests, and with that pandas: 0.3 s, 29 MB.

    Each call into the JVM looks there whether numpy is installed, to convert its arrays (`NumpyArrayConverter`).
    """
    testing, utils = ModuleType("pyspark.testing"), ModuleType("pyspark.testing.utils")
    vars(utils).update(have_numpy=True, have_pandas=True, have_pyarrow=True)
    for module in (testing, utils):
        sys.modules.setdefault(module.__name__, module)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _tell_but_the_end(server: accumulators.AccumulatorTCPServer, request: object, address: object) -> None:
    """Ignore the end of a connection: if the JVM ends during a batch, pyspark would print a traceback."""
    if not isinstance(sys.exc_info()[1], EOFError):
        socketserver.BaseServer.handle_error(server, request, address)  # type: ignore[arg-type]
