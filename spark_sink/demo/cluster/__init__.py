"""A Kafka of several brokers, one per zone, as local processes."""

from spark_sink.demo.cluster.broker import Access, Broker, BrokerStatus
from spark_sink.demo.cluster.java import KAFKA_VERSION
from spark_sink.demo.cluster.local_cluster import ZONES, Cluster

__all__ = ["KAFKA_VERSION", "ZONES", "Access", "Broker", "BrokerStatus", "Cluster"]
