"""The process from which Spark forks its Python workers, with what every task needs loaded before the first fork.

A task that reads and writes holds two workers at a time, so two cores have four. Each would load Arrow, librdkafka and
delta-rs for itself; forked from here, they share those pages and the first batch does not wait for them. Spark starts
it where `spark.python.daemon.module` names it.

What is loaded is only loaded: no client, file system or pool of threads is used before the fork. The threads that
imports start (numpy's OpenBLAS, jemalloc) know of forks.
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
    """Load what tasks need, and keep the garbage collector of forked processes from writing into these pages."""
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark import daemon

    load()
    daemon.manager()
