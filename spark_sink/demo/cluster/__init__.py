"""A Kafka of several brokers, one per zone, as local processes."""

from spark_sink.demo.cluster._cluster import ZONES, Access, Broker, BrokerStatus, Cluster
from spark_sink.demo.cluster._java import KAFKA_VERSION

__all__ = ["KAFKA_VERSION", "ZONES", "Access", "Broker", "BrokerStatus", "Cluster"]
