"""Ingestion by jobs that claim partitions in a database: no consumer group, no Spark, the same tables."""

from spark_sink.claimed.job_loop import ClaimedIngest
from spark_sink.claimed.job_process import build, run
from spark_sink.claimed.job_progress import Round
from spark_sink.claimed.job_settings import ClaimedSettings

__all__ = ["ClaimedIngest", "ClaimedSettings", "Round", "build", "run"]
