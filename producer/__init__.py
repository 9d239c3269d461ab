"""Producers that write to the partitions of their own zone.

* `errors`: the exceptions and warnings.
* `decisions`: the rules of the partitioning, as pure functions.
* `metadata_requests`: reads leaders and racks from brokers.
* `zones`: finds the zone of this process.
* `traffic_cost`: bytes by zone, and their price.
* `partitioning`: chooses the partition of a record; shared by the clients.
* `forecast`: where a producer's records go, now and after the failure of a zone.
* `prometheus`: metrics of producers.
* `clients`: the producers for confluent-kafka, its asyncio client and kafka-python.
* `testing`: librdkafka's mock cluster, for tests.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from producer.clients.confluent import AZAwareProducer
    from producer.clients.confluent_aio import AZAwareAIOProducer
    from producer.clients.kafka_python import AZAwarePartitioner
    from producer.clients.serializing import AZAwareAIOSerializingProducer, AZAwareSerializingProducer
    from producer.clients.traffic_meter import TrafficMeter
    from producer.decisions.candidate_partitions_in_zone import Reason
    from producer.decisions.producer_settings import KeyMode
    from producer.decisions.skew_guard import SkewGuard
    from producer.errors import (
        ForkError,
        MetadataError,
        PolicyError,
        PollWarning,
        ProducerError,
        RackWarning,
        UnknownTopicError,
        ZoneDetectionError,
    )
    from producer.traffic_cost import Count, Traffic, matrix
else:
    __getattr__ = lazy_imports.attributes(
        __name__,
        {
            "clients.confluent": ["AZAwareProducer"],
            "clients.confluent_aio": ["AZAwareAIOProducer"],
            "clients.kafka_python": ["AZAwarePartitioner"],
            "clients.serializing": ["AZAwareAIOSerializingProducer", "AZAwareSerializingProducer"],
            "clients.traffic_meter": ["TrafficMeter"],
            "decisions.candidate_partitions_in_zone": ["Reason"],
            "decisions.producer_settings": ["KeyMode"],
            "decisions.skew_guard": ["SkewGuard"],
            "errors": [
                "ForkError",
                "MetadataError",
                "PolicyError",
                "PollWarning",
                "ProducerError",
                "RackWarning",
                "UnknownTopicError",
                "ZoneDetectionError",
            ],
            "traffic_cost": ["Count", "Traffic", "matrix"],
        },
    )

__all__ = [
    "AZAwareAIOProducer",
    "AZAwareAIOSerializingProducer",
    "AZAwarePartitioner",
    "AZAwareProducer",
    "AZAwareSerializingProducer",
    "Count",
    "ForkError",
    "KeyMode",
    "MetadataError",
    "PolicyError",
    "PollWarning",
    "ProducerError",
    "RackWarning",
    "Reason",
    "SkewGuard",
    "Traffic",
    "TrafficMeter",
    "UnknownTopicError",
    "ZoneDetectionError",
    "matrix",
]
