"""Ingestion by jobs that claim partitions in a database: no consumer group, no Spark, the same tables.

* `job_settings`: the settings of a job.
* `job_checks`: the checks of `azimuth claims run --check`.
* `job_process`: a job as a process, until a signal stops it.
* `job_loop`: claim, read, write to the table, commit, disown; `job_parts`: what it needs of claims, tables and logs.
* `partitions_per_job`: how many partitions a job takes. Pure.
* `published_workers`: the numbers that the autoscaler publishes.
* `round_reader`: reads the records of a round; renews its claims meanwhile.
* `round_bytes`: bounds the bytes of a round. Pure.
* `labelled_batches`: batches under the tables' labels of the topics.
* `header_samples`: fetches records, and sometimes checks whether left-out headers hold something that a user may want.
* `caught_up`: when `azimuth claims run --once` ends. Pure.
* `job_progress`: the progress log; `job_metrics`: metrics for Prometheus.
"""

from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.claimed.job_process import build, run
from spark_sink.claimed.job_progress import Round
from spark_sink.claimed.job_settings import ClaimedSettings

__all__ = ["ClaimedIngest", "ClaimedSettings", "Round", "build", "run"]
