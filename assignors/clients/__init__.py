"""Code that every Kafka client of these packages needs.

* `kafka_python_names`: librdkafka's properties under kafka-python's names.
* `librdkafka_values`: values of its properties, read as it reads them.
* `kafka_python_security`: certificates, keystores and tokens for kafka-python's clients.
* `masked_addresses`: addresses without secrets, for messages.
* `client_creation`: clients of confluent-kafka from a user's properties.
* `unreachable_causes`: the reason why brokers do not answer.
* `received_traffic`: what a consumer received by zone, and its price; `broker_racks`: the zones of brokers.
* `compacted_topic`: a compacted topic as a table.
* `log_offsets`: offsets of many partitions in a few requests.
* `silent_brokers`: brokers that keep their connections and answer nothing.
* `redis_addresses`: clients of Redis, also by its Sentinels.
* `topic_names`: valid names of topics.
* `kafka_python_creation`: kafka-python's clients, of which nothing is open after an error.
* `kafka_python_internals`: the private names of kafka-python, in one place.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from assignors.clients.broker_racks import BrokerRacks
    from assignors.clients.compacted_topic import CompactedFeed, TableTopic, make_compacted_topic
    from assignors.clients.kafka_python_names import CLIENT, kafka_python_settings, refused_property
    from assignors.clients.librdkafka_values import flat, whole_number
    from assignors.clients.log_offsets import LogOffsets, Offset, OffsetWithMetadata
    from assignors.clients.masked_addresses import shown
    from assignors.clients.received_traffic import Received, ReceivedTraffic
    from assignors.clients.silent_brokers import admin_properties
    from assignors.clients.topic_names import topic_name
    from assignors.clients.unreachable_causes import ask_brokers, why_unreachable
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "broker_racks": ["BrokerRacks"],
            "compacted_topic": ["CompactedFeed", "TableTopic", "make_compacted_topic"],
            "kafka_python_names": ["CLIENT", "kafka_python_settings", "refused_property"],
            "librdkafka_values": ["flat", "whole_number"],
            "log_offsets": ["LogOffsets", "Offset", "OffsetWithMetadata"],
            "masked_addresses": ["shown"],
            "received_traffic": ["Received", "ReceivedTraffic"],
            "silent_brokers": ["admin_properties"],
            "topic_names": ["topic_name"],
            "unreachable_causes": ["ask_brokers", "why_unreachable"],
        },
    )

__all__ = [
    "CLIENT",
    "BrokerRacks",
    "CompactedFeed",
    "LogOffsets",
    "Offset",
    "OffsetWithMetadata",
    "Received",
    "ReceivedTraffic",
    "TableTopic",
    "admin_properties",
    "ask_brokers",
    "flat",
    "kafka_python_settings",
    "make_compacted_topic",
    "refused_property",
    "shown",
    "topic_name",
    "whole_number",
    "why_unreachable",
]
