"""The report of the producer's benchmarks, build/bench/producer.json, and the producer without compiled code."""

from functools import partial
from types import ModuleType
from typing import ClassVar

from producer import AZAwareProducer
from producer.partitioning import produce_interpreted
from tests.benchmarks import report


class PureProducer(AZAwareProducer):
    """The producer as it is where it was built without a C compiler."""

    __slots__ = ()
    _kafka_azimuth_hot: ClassVar[ModuleType] = produce_interpreted
    produce = produce_interpreted.produce


save = partial(report.save, subject="producer", libraries=("confluent-kafka", "librdkafka", "kafka-python"))
"""Puts a section into the report and prints it."""
