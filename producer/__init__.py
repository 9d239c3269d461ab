"""Who writes where: producers that keep to the partitions of their own zone."""

from producer._confluent import AZAwareProducer
from producer._confluent_aio import AZAwareAIOProducer
from producer._errors import (
    ForkError,
    MetadataError,
    PolicyError,
    PollWarning,
    ProducerError,
    RackWarning,
    UnknownTopicError,
    ZoneDetectionError,
)
from producer._kafka_python import AZAwarePartitioner
from producer._locality import Reason
from producer._meter import TrafficMeter
from producer._policy import KeyMode
from producer._skew import SkewGuard
from producer._traffic import Count, Traffic, matrix

__all__ = [
    "AZAwareAIOProducer",
    "AZAwarePartitioner",
    "AZAwareProducer",
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
