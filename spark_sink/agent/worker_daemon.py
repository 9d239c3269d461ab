"""The process from which Spark forks its Python workers; it loads the modules of all tasks before the first fork.

A task that reads and writes uses two workers, so two cores have four workers. Each would load Arrow, librdkafka and
delta-rs itself. Forked from here, they share those pages, and the first batch does not wait for the imports. Spark
starts this process if `spark.python.daemon.module` names it (`DAEMON`).
"""

from spark_sink.agent.start.worker_modules import load
from spark_sink.monitoring.logs.process_log import log_as_worker

if __name__ == "__main__":
    from pyspark import daemon

    log_as_worker()
    load()
    daemon.manager()
