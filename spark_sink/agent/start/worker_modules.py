"""The modules of Spark's Python processes, loaded before the processes are forked.

The modules are only loaded: no client, file system or thread pool is used before the fork. The threads that imports
start (numpy's OpenBLAS, jemalloc) support forks.
"""

import gc
import importlib
from collections.abc import Sequence

DAEMON = "spark_sink.agent.worker_daemon"
"""The module of the process from which Spark forks its Python workers."""
# pyspark loads pandas with the first Arrow batch of a task.
TASKS = (
    "pyspark.worker",
    "spark_sink.source.kafka_source",
    "spark_sink.fetch.range_reader",
    "spark_sink.sink.direct_landing",
    "spark_sink.sink.delta_sink",
    "pyarrow.parquet",
    "pandas",
)
# Those of the query itself: the reader, the plans of a batch, and its commit.
QUERY = (
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "spark_sink.source.stream_reader",
    "spark_sink.source.membership_session",
    "spark_sink.monitoring.logs.process_log",
    # What a reader loads when it joins the group: half a second.
    "assignors.clients.kafka_python_security",
    "assignors.member.group_member",
    "assignors.protocol.kafka_python_assignors",
    "assignors.pauses",
    "confluent_kafka.admin",
    "encodings.idna",
)


def load(names: Sequence[str] = TASKS) -> None:
    """Load modules, and prevent the garbage collector of forked processes from writing to these pages."""
    for name in names:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
