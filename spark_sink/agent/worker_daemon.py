"""The process from which Spark forks its Python workers; it loads the modules of all tasks before the first fork.

A task that reads and writes uses two workers, so two cores have four workers. Each would load Arrow, librdkafka and
delta-rs itself. Forked from here, they share those pages, and the first batch does not wait for the imports. Spark
starts this process if `spark.python.daemon.module` names it.

The modules are only loaded: no client, file system or thread pool is used before the fork. The threads that imports
start (numpy's OpenBLAS, jemalloc) support forks.
"""

import gc
import importlib

MODULE = "spark_sink.agent.worker_daemon"
# pyspark loads pandas with the first Arrow batch of a task.
_LOADED = (
    "pyspark.worker",
    "spark_sink.source.kafka_source",
    "spark_sink.fetch.range_reader",
    "spark_sink.sink.direct_landing",
    "spark_sink.sink.delta_sink",
    "pyarrow.parquet",
    "pandas",
)


def load() -> None:
    """Load the modules of tasks, and prevent the garbage collector of forked processes from writing to these pages."""
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark import daemon

    from spark_sink.logs.process_log import log_as_worker

    log_as_worker()
    load()
    daemon.manager()
