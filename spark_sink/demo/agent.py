"""One ingestion agent: a Spark driver whose query is a member of the consumer group.

`python -m spark_sink.demo.agent --help`; the demo starts several, and kills one.
"""

import argparse
import os
import signal
import sys
from types import FrameType

from pyspark.sql import SparkSession

import spark_sink
from spark_sink.demo.flights import TOPIC_PREFIX

SESSION_TIMEOUT_MS = 6000


def main() -> None:
    """Ingest until SIGTERM."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, _leave)
    spark = _session(arguments.agent)
    try:
        ingest(spark, arguments)
    except SystemExit:
        raise
    except Exception as error:
        print(f"{arguments.agent}: {error}", file=sys.stderr)  # noqa: T201 - the log of this process
        raise SystemExit(1) from error
    finally:
        spark.stop()


def ingest(spark: SparkSession, arguments: argparse.Namespace) -> None:
    """Start the query and wait for its end."""
    spark.dataSource.register(spark_sink.KafkaGroupSource)
    spark.dataSource.register(spark_sink.DeltaExactlyOnceSink)
    query = (
        spark.readStream.format("kafka-group")
        .option("kafka.bootstrap.servers", arguments.bootstrap_servers)
        .option("kafka.group.id", arguments.group)
        .option("kafka.session.timeout.ms", str(SESSION_TIMEOUT_MS))
        .option("kafka.heartbeat.interval.ms", "1000")
        .option("subscribePattern", f"{TOPIC_PREFIX.replace('.', '[.]')}.*")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(arguments.max_offsets_per_trigger))
        .option("assignor", "hrw")
        .option("agent", arguments.agent)
        .option("rack", arguments.rack)
        .option("positions", arguments.table)
        .option("telemetry", arguments.telemetry)
        .load()
        .writeStream.format("delta-exactly-once")
        .option("path", arguments.table)
        .option("kafka.group.id", arguments.group)
        .option("agent", arguments.agent)
        .option("checkpointLocation", arguments.checkpoint)
        .start()
    )
    query.awaitTermination()


def _session(agent: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.appName(agent)
        .master("local[2]")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -Xshare:auto")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def _leave(_signal: int, _frame: FrameType | None) -> None:
    # Raised inside awaitTermination; the query is stopped with the session, and its reader leaves the group.
    raise SystemExit(0)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", required=True, help="its name, the same after a restart")
    parser.add_argument("--rack", required=True, help="its zone")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--table", required=True, help="the Delta table")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--telemetry", required=True, help="file for one JSON line per change of ownership and lag")
    parser.add_argument("--max-offsets-per-trigger", type=int, default=20_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
