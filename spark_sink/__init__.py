"""Kafka to Delta and Iceberg on Spark, every record exactly once, as a member of the consumer group.

Each folder imports only from those above it in this list:

* `errors`: the exceptions.
* `monitoring`: what an operator sees: HTTP, metrics, logs.
* `ranges`: ranges of offsets, and lag in seconds.
* `formats`: JSON, Avro and Protobuf values as Arrow columns.
* `options`: the options of a query, as values.
* `kafka`: requests to brokers without a group.
* `fetch`: reads ranges of offsets into Arrow batches.
* `lake`: Delta and Iceberg tables.
* `sink`: the sinks: compare and swap by position, quarantines, rewinds.
* `source`: Spark's source, a member of the consumer group.
* `checks`: checks before a start.
* `agent`: one ingestion agent on Spark.
* `fleet`: agents over many clusters, without Spark.
* `claimed`: jobs that claim partitions in a database.
* `demo`: the whole pipeline on this machine.
* `cli`: the command `azimuth`.
* `testing`: a table in memory, for tests.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from spark_sink.agent.start.warm_python import warm_processes
    from spark_sink.errors import SparkSinkError
    from spark_sink.lake.positions_in_delta_log import positions
    from spark_sink.sink.delta_sink import DeltaExactlyOnceSink
    from spark_sink.sink.iceberg_sink import IcebergExactlyOnceSink
    from spark_sink.sink.spark_landing import SparkLanding
    from spark_sink.source.fixed_offsets import fixed_offsets
    from spark_sink.source.kafka_source import KafkaGroupSource
    from spark_sink.source.query_metrics import QueryMetrics
    from spark_sink.source.received_traffic import QueryTraffic
    from spark_sink.source.union_read.union_reader import union
else:
    # Loaded at first use: pyspark and pyarrow take most of a second, and `azimuth --help` does not need them.
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "agent.start.warm_python": ["warm_processes"],
            "errors": ["SparkSinkError"],
            "lake.positions_in_delta_log": ["positions"],
            "sink.delta_sink": ["DeltaExactlyOnceSink"],
            "sink.iceberg_sink": ["IcebergExactlyOnceSink"],
            "sink.spark_landing": ["SparkLanding"],
            "source.fixed_offsets": ["fixed_offsets"],
            "source.kafka_source": ["KafkaGroupSource"],
            "source.query_metrics": ["QueryMetrics"],
            "source.received_traffic": ["QueryTraffic"],
            "source.union_read.union_reader": ["union"],
        },
    )

__all__ = [
    "DeltaExactlyOnceSink",
    "IcebergExactlyOnceSink",
    "KafkaGroupSource",
    "QueryMetrics",
    "QueryTraffic",
    "SparkLanding",
    "SparkSinkError",
    "fixed_offsets",
    "positions",
    "union",
    "warm_processes",
]
