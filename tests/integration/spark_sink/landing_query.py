"""A query whose batches `SparkLanding` writes, as a process: `python -m ... SOURCE SINK`, both options as JSON."""

import json
import os
import sys

from pyspark.sql import SparkSession

from spark_sink import KafkaGroupSource, SparkLanding


def main(source: dict[str, str], sink: dict[str, str]) -> None:
    """Read what is there, with SQL between source and table."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(KafkaGroupSource)
    rows = spark.readStream.format("kafka-group").options(**source).load().selectExpr("*", "n % 7 as seventh")
    writer = rows.writeStream.foreachBatch(SparkLanding("delta-exactly-once", sink))
    writer = writer.option("checkpointLocation", sink["checkpointLocation"])
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*(json.loads(one) for one in sys.argv[1:]))
