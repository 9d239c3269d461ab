"""Ingestion by jobs that claim partitions in a database: no consumer group, no Spark, the same tables."""

from spark_sink.claimed._ingest import ClaimedIngest, Round
from spark_sink.claimed._run import build, run
from spark_sink.claimed._settings import ClaimedSettings

__all__ = ["ClaimedIngest", "ClaimedSettings", "Round", "build", "run"]
