"""A Kafka of several brokers, one per zone, as local processes."""

from spark_sink.demo.cluster.broker import Access, Broker, BrokerStatus
from spark_sink.demo.cluster.broker_assignors import JAR_VARIABLE, find_assignor_jar
from spark_sink.demo.cluster.kafka_jars import KAFKA_VERSION
from spark_sink.demo.cluster.local_cluster import ZONES, Cluster

__all__ = [
    "JAR_VARIABLE",
    "KAFKA_VERSION",
    "ZONES",
    "Access",
    "Broker",
    "BrokerStatus",
    "Cluster",
    "find_assignor_jar",
]
