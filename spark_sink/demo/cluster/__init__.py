"""A Kafka of several brokers, one per zone, as local processes."""

from spark_sink.demo.cluster._broker import Access, Broker, BrokerStatus
from spark_sink.demo.cluster._cluster import ZONES, Cluster
from spark_sink.demo.cluster._java import KAFKA_VERSION

__all__ = ["KAFKA_VERSION", "ZONES", "Access", "Broker", "BrokerStatus", "Cluster"]
