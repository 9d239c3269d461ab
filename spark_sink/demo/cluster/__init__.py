"""A Kafka of several brokers, one per zone, as local processes."""

from spark_sink.demo.cluster._cluster import Broker, BrokerStatus, Cluster

__all__ = ["Broker", "BrokerStatus", "Cluster"]
