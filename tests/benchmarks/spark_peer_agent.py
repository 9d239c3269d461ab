"""The peer of an agent with trickling topics, a separate process: Spark's connector into Parquet files."""

import argparse
import signal
from types import FrameType

from spark_sink.agent.agent_settings import AgentSettings
from spark_sink.agent.spark_session import session
from spark_sink.agent.start.early_spark import early_spark
from spark_sink.cli._option_values import pairs


def main() -> None:
    """Ingest until SIGTERM."""
    arguments = argparse.ArgumentParser()
    for name in ("bootstrap-servers", "group", "table", "checkpoint", "subscribe-pattern", "master"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--spark", action="append")
    given = vars(arguments.parse_args())
    settings = AgentSettings.load(None, {**given, "spark": pairs(given["spark"], "--spark")})
    with early_spark(settings) as early, session(early) as spark:
        options = {
            "kafka.bootstrap.servers": settings.bootstrap_servers,
            "kafka.fetch.max.wait.ms": "10",
            "subscribePattern": str(settings.subscribe_pattern),
            "startingOffsets": "latest",
        }
        writer = spark.readStream.format("kafka").options(**options).load().writeStream.format("parquet")
        writer = writer.option("path", settings.table).option("checkpointLocation", settings.checkpoint)
        query = writer.trigger(processingTime=settings.trigger).start()
        asked: list[int] = []

        def hear(number: int, _frame: FrameType | None) -> None:
            asked.append(number)

        signal.signal(signal.SIGTERM, hear)
        while not (asked or query.awaitTermination(1)):
            pass
        query.stop()


if __name__ == "__main__":
    main()
