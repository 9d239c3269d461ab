"""A Kafka of several brokers, one per zone, as local processes.

* `local_cluster`: the cluster: its state file, its brokers, and the operations on them.
* `broker`: one broker, and the rights of its users; `broker_process`: its process.
* `broker_settings`: its configuration file; `broker_archive`: its classes, archived.
* `broker_storage`: its formatted storage; `memory_data`: the place of its data in memory, where there is room.
* `broker_assignors`: the assignors that run inside a broker.
* `kafka_jars`: resolves the broker's jars into a cache.
* `ports`: free ports.
"""

from spark_sink.demo.cluster.broker import Access, Broker, BrokerStatus
from spark_sink.demo.cluster.broker_assignors import JAR_VARIABLE, find_assignor_jar
from spark_sink.demo.cluster.kafka_jars import KAFKA_VERSION
from spark_sink.demo.cluster.local_cluster import ZONES, Cluster, cluster_command

__all__ = [
    "JAR_VARIABLE",
    "KAFKA_VERSION",
    "ZONES",
    "Access",
    "Broker",
    "BrokerStatus",
    "Cluster",
    "cluster_command",
    "find_assignor_jar",
]
